#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::examples {

// One end of a socket between two processes of the job. Numbers arrive whole and in order. One
// owner.
class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}

  // Both ends, to be divided by fork().
  static Result<std::pair<int, int>> Pair();

  // kUnavailable when the peer is gone.
  Status Send(std::span<const double> numbers);
  Status Receive(std::span<double> numbers);

  int get() const { return socket_.get(); }

 private:
  const FileDescriptor socket_;
};

}  // namespace zeus::examples
