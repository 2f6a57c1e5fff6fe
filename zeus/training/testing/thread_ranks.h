#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "zeus/optimizer/collective.h"

namespace zeus::testing {

// Ranks as threads of one process.
class Group {
 public:
  explicit Group(int size) : size_(size), barrier_(size) {}
  int size() const { return size_; }

  void Combine(std::span<double> values, const std::function<double(double, double)>& combine) {
    barrier_.arrive_and_wait();
    {
      const std::lock_guard lock(mutex_);
      if (arrived_++ == 0) {
        shared_.assign(values.begin(), values.end());
      } else {
        for (std::size_t i = 0; i < values.size(); ++i) shared_[i] = combine(shared_[i], values[i]);
      }
    }
    barrier_.arrive_and_wait();
    std::ranges::copy(shared_, values.begin());
    barrier_.arrive_and_wait();
    arrived_ = 0;
  }

 private:
  const int size_;
  std::barrier<> barrier_;
  std::mutex mutex_;
  std::atomic<int> arrived_ = 0;
  std::vector<double> shared_;
};

class GroupMember final : public Collective {
 public:
  GroupMember(Group& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  Status Sum(std::span<double> values) override {
    group_.Combine(values, [](double a, double b) { return a + b; });
    return Ok();
  }
  Status Max(std::span<double> values) override {
    group_.Combine(values, [](double a, double b) { return std::max(a, b); });
    return Ok();
  }
  Status Broadcast(std::span<double> values, int root) override {
    std::vector<double> sent(values.begin(), values.end());
    if (rank_ != root) std::ranges::fill(sent, 0.0);
    group_.Combine(sent, [](double a, double b) { return a + b; });
    std::ranges::copy(sent, values.begin());
    return Ok();
  }

 private:
  Group& group_;
  const int rank_;
};

}  // namespace zeus::testing
