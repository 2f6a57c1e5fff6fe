#include "zeus/http/worker_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "zeus/base/log.h"

namespace zeus::http {
namespace {

constexpr TimePoint kNever{Seconds(1e9)};  // Never comes: a worker runs once.

}  // namespace

WorkerPool::WorkerPool(int most_threads)
    : most_threads_(static_cast<std::size_t>(std::max(1, most_threads))) {
  const std::lock_guard lock(mutex_);
  AddThread();
}

WorkerPool::~WorkerPool() {
  std::vector<std::unique_ptr<Ticker>> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.notify_all();
}

void WorkerPool::AddThread() {
  threads_.push_back(std::make_unique<Ticker>("zeus-worker", [this] {
    Work();
    return kNever;
  }));
  ++idle_;
}

void WorkerPool::AddThreadIfBusy() {
  if (tasks_.size() <= idle_ || threads_.size() >= most_threads_) return;
  try {
    AddThread();
  } catch (const std::system_error&) {
    if (!std::exchange(warned_, true))
      log::Warning("{} threads of this kind have to do: {}", threads_.size(),
                   NoThreadError().message);
  }
}

void WorkerPool::Post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    AddThreadIfBusy();
  }
  wake_.notify_one();
}

std::size_t WorkerPool::threads() const {
  const std::lock_guard lock(mutex_);
  return threads_.size();
}

void WorkerPool::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (stopping_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // It may hold a large request.
    lock.lock();
    ++idle_;
  }
}

}  // namespace zeus::http
