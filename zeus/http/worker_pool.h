#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "zeus/base/ticker.h"

namespace zeus::http {

// Threads for tasks that block, mostly on the database. The pool starts with one thread and adds
// another whenever a task finds all of them busy, up to a maximum: a server with little to do needs
// few. When the system has no thread left, the existing ones do the work. Thread-safe.
class WorkerPool {
 public:
  // Throws std::system_error when the system cannot start even one thread.
  explicit WorkerPool(int most_threads);
  ~WorkerPool();  // Waits for the running tasks and drops the others.
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(std::function<void()> task);
  std::size_t threads() const;

 private:
  void Work();
  void AddThread();        // Needs mutex_.
  void AddThreadIfBusy();  // Needs mutex_.

  const std::size_t most_threads_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_, to the end of the class.
  std::deque<std::function<void()>> tasks_{};
  bool stopping_ = false;
  bool warned_ = false;   // The lack of threads was logged.
  std::size_t idle_ = 0;  // Threads that wait for a task, or are about to.
  std::vector<std::unique_ptr<Ticker>> threads_{};
};

}  // namespace zeus::http
