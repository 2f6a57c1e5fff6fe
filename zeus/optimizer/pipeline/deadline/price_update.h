#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "zeus/optimizer/pipeline/deadline/deadline_network.h"

namespace zeus::pipeline::internal {

// Shifts the times of nodes so that flow can go from (most of) the nodes with too much of it to
// those with too little, however far those are: without it, excess wanders through a long pipeline
// by single steps. A search with buckets from the nodes in deficit, in multiples of the tolerance.
class PriceUpdate {
 public:
  explicit PriceUpdate(DeadlineNetwork& network);

  // `in_excess`: all nodes with positive excess, perhaps among others. `in_deficit` likewise; those
  // that are in deficit no longer are removed. No residual arc's reduced cost falls below
  // -tolerance by it.
  void Run(std::span<const int> in_excess, std::vector<int>& in_deficit, Ticks tolerance);

 private:
  enum class Visit : std::uint8_t { kNone, kWaiting, kDone };
  struct Mark {
    std::int32_t distance = 0;
    std::int32_t next = -1;
    std::int32_t previous = -1;
    std::uint32_t run = 0;  // The marks of other runs are void.
    Visit visit = Visit::kNone;
  };

  Mark& mark(int at) { return marks_[static_cast<std::size_t>(at)]; }
  void Insert(int at, int distance);
  void Remove(int at);
  void Reach(int at, int distance, Ticks reduced_cost);
  void Scan(int at, int distance);
  // Until `wanted` nodes in excess have been reached; returns the distance of the last one.
  int Search(std::int64_t wanted);

  DeadlineNetwork& network_;
  Ticks tolerance_ = 1;
  std::uint32_t run_ = 0;
  std::vector<Mark> marks_;
  std::vector<std::int32_t> buckets_{};  // First node of each distance, -1: none.
  int farthest_ = 0;
  std::vector<int> scanned_{};
};

}  // namespace zeus::pipeline::internal
