#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

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

// Implements a Collective for the stages of a pipeline: all stages send to stage 0, which combines
// the values and answers. That is fast enough for a few numbers per iteration. Not thread-safe.
class SocketCollective final : public Collective {
 public:
  // `peers` of stage 0 holds a channel to each other stage, in their order; that of other stages
  // one to stage 0.
  SocketCollective(int rank, int size, std::vector<std::unique_ptr<Channel>> peers)
      : rank_(rank), size_(size), peers_(std::move(peers)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status Sum(std::span<double> values) override;
  Status Max(std::span<double> values) override;
  Status Broadcast(std::span<double> values, int root) override;

 private:
  using Combine = std::function<double(double, double)>;
  Status Reduce(std::span<double> values, const Combine& combine);

  const int rank_;
  const int size_;
  std::vector<std::unique_ptr<Channel>> peers_;
};

}  // namespace zeus::examples
