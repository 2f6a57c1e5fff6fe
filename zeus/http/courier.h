#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace zeus::http {

// Runs tasks on the thread of a server's sockets, one after the other. What is to be sent to a
// thousand connections is cheapest there: no other thread touches what belongs to them. Tasks must
// not block. Thread-safe; it may outlive its server, and then drops them.
class Courier {
 public:
  using Task = std::function<void()>;

  // `post` takes a task and returns without running it.
  explicit Courier(std::function<void(Task)> post) : post_(std::move(post)) {}

  void Post(Task task) {
    const std::lock_guard lock(mutex_);
    if (post_) post_(std::move(task));
  }
  // The server ends.
  void Close() {
    const std::lock_guard lock(mutex_);
    post_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::function<void(Task)> post_;  // Guarded by mutex_.
};

}  // namespace zeus::http
