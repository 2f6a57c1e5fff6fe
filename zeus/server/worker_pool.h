#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "zeus/base/ticker.h"

namespace zeus::server {

// Threads for work that waits (for the database, mostly). Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();  // Waits for what was begun and drops what was not.
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(std::function<void()> task);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_{};  // Guarded by mutex_, as is the next.
  bool stopping_ = false;
  std::vector<std::unique_ptr<Ticker>> threads_{};
};

}  // namespace zeus::server
