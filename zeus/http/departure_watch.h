#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::http {

// Notices that the other ends of connections close, also while nobody reads from them and while
// unread bytes are in front of the end. It costs one descriptor, and nothing while nothing happens.
// One thread.
class DepartureWatch {
 public:
  // kUnavailable when the system has no descriptor left.
  static Result<DepartureWatch> Start();

  // Readable while Take() has something to return.
  int descriptor() const { return epoll_->get(); }

  // Watches a connected socket until it closes or its other end does; closing it ends the watch.
  Status Add(int socket, std::uint64_t key);
  // Returns the keys of the connections whose other ends have closed since the last call, each
  // once.
  std::vector<std::uint64_t> Take();

 private:
  explicit DepartureWatch(std::unique_ptr<FileDescriptor> epoll) : epoll_(std::move(epoll)) {}

  std::unique_ptr<FileDescriptor> epoll_;
};

}  // namespace zeus::http
