#pragma once

#include <cstddef>
#include <vector>

#include "zeus/optimizer/pipeline/deadline/deadline_network.h"
#include "zeus/optimizer/pipeline/deadline/price_update.h"

namespace zeus::pipeline::internal {

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
