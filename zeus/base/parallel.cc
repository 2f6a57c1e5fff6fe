#include "zeus/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace zeus {

int MachineThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void ForEachIndex(std::size_t count, int threads, const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t index = next++; index < count; index = next++) task(index);
  };
  const std::size_t workers = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < workers; ++i) others.emplace_back(work);
  work();
}

}  // namespace zeus
