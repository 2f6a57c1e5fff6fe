#pragma once

#include <cstddef>
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

// Cost scaling by push and relabel, after Goldberg and Tarjan ("Finding minimum-cost circulations
// by successive approximation", 1990), on arcs with convex costs: makes the flow a circulation that
// agrees with the times of the nodes but for a tolerance, which shrinks from phase to phase.
class CostScaling {
 public:
  // Both must be set: times within the deadline for the shortest durations, and the deadline.
  explicit CostScaling(DeadlineNetwork& network);

  // One phase.
  void Refine(Ticks tolerance);

  // Looks for whole ticks at which the flow is exactly optimal, by at most `sweeps` passes. False,
  // with times as before, when there are none or when it takes more.
  bool MakeTimesExact(int sweeps);

 private:
  // Raises times until all arcs that have room agree with them; each sweep goes through the
  // activities in both directions. True when nothing was left to raise.
  bool RaiseTimes(Ticks tolerance, int sweeps);
  bool RaiseBegin(int i, Ticks tolerance);
  bool RaiseEnd(int i, Ticks tolerance);
  // Times that no flow could agree with: waits, shortest durations, the deadline.
  void RestoreOrder(Ticks tolerance);
  void RestoreDeadline(Ticks tolerance);
  // Then flows that do not agree with the times; leaves excesses behind.
  void AgreeWithTimes(Ticks tolerance);

  void CollectExcesses();
  void Discharge(int at);
  // Pushes along one kind of arc, as much as may go; returns the least reduced cost of those with
  // room that may not yet be used.
  Ticks PushToWaiting(int at);
  Ticks PushBackActivity(int at);
  Ticks PushActivity(int at);
  Ticks PushBackWaits(int at);
  void Move(int from, int to, Slope amount);

  DeadlineNetwork& network_;
  PriceUpdate price_update_;
  Ticks tolerance_ = 1;
  bool has_flow_ = false;     // From a phase before.
  std::vector<int> queue_{};  // Nodes with excess; those before next_ are done.
  std::size_t next_ = 0;
  std::vector<char> is_queued_;
  std::vector<int> in_deficit_{};
  std::size_t relabels_ = 0;  // Since the last price update.
};

}  // namespace zeus::pipeline::internal
