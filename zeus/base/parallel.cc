#include "zeus/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace zeus {

int MachineThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void ForEachIndex(std::size_t count, int threads, const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;  // The first. Guarded by `mutex`.
  const auto work = [&] {
    try {
      for (std::size_t index = next++; index < count; index = next++) task(index);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  const std::size_t workers = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
  {
    std::vector<std::jthread> others;
    others.reserve(workers - std::min<std::size_t>(workers, 1));
    try {
      for (std::size_t i = 1; i < workers; ++i) others.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads to be had: those that there are do the work.
    }
    work();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace zeus
