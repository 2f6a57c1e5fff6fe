#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "examples/pipeline/channel.h"
#include "zeus/optimizer/collective.h"

namespace zeus::examples {

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
