#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "zeus/base/ticker.h"

namespace zeus::server {

// Threads for work that waits (for the database, mostly). It begins with one and starts another
// when a task finds all of them busy, up to a greatest number: a server that nobody asks much needs
// few. Where the system has no thread left, those that there are do the work. Thread-safe.
class WorkerPool {
 public:
  // Throws std::system_error when there is not even one thread to be had.
  explicit WorkerPool(int most_threads);
  ~WorkerPool();  // Waits for what was begun and drops what was not.
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(std::function<void()> task);
  std::size_t threads() const;

 private:
  void Work();
  // Both are called with mutex_ held.
  void AddThread();
  void AddThreadIfBusy();

  const std::size_t most_threads_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_{};  // Guarded by mutex_, as are the next.
  bool stopping_ = false;
  bool warned_ = false;   // That there was no thread to be had.
  std::size_t idle_ = 0;  // Threads that wait for a task, or are about to.
  std::vector<std::unique_ptr<Ticker>> threads_{};
};

}  // namespace zeus::server
