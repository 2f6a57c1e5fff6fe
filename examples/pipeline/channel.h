#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::examples {

// One end of a socket between two processes of the job. Messages arrive whole and in order. Not
// thread-safe.
class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}

  // Returns both ends, one for each process after fork().
  static Result<std::pair<int, int>> Pair();

  // Both return kUnavailable when the peer has ended.
  Status Send(std::span<const double> numbers);
  Status Receive(std::span<double> numbers);

  int get() const { return socket_.get(); }

 private:
  const FileDescriptor socket_;
};

}  // namespace zeus::examples
