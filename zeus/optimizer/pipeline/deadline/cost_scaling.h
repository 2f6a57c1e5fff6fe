#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "zeus/optimizer/pipeline/deadline/deadline_network.h"

namespace zeus::pipeline::internal {

// Shifts the times of nodes so that flow can go from most of the nodes in excess to nodes in
// deficit, however far away they are. Without this, excess would wander through a long pipeline in
// single steps. It is a shortest-path search from the nodes in deficit with a bucket for each
// distance, which is counted in multiples of the tolerance.
class PriceUpdate {
 public:
  explicit PriceUpdate(DeadlineNetwork& network);

  // `in_excess` holds all nodes with positive excess, and maybe others; `in_deficit` likewise, and
  // nodes that are not in deficit any more are removed from it. The reduced cost of no residual arc
  // falls below -tolerance.
  void Run(std::span<const int> in_excess, std::vector<int>& in_deficit, Ticks tolerance);

 private:
  enum class Visit : std::uint8_t { kNone, kWaiting, kDone };
  struct Mark {
    std::int32_t distance = 0;
    std::int32_t next = -1;
    std::int32_t previous = -1;
    std::uint32_t run = 0;  // Number of the run that set the mark; marks of other runs are void.
    Visit visit = Visit::kNone;
  };

  Mark& mark(int at) { return marks_[static_cast<std::size_t>(at)]; }
  void Insert(int at, int distance);
  void Remove(int at);
  void Reach(int at, int distance, Ticks reduced_cost);
  void Scan(int at, int distance);
  // Searches until `wanted` nodes in excess have been reached; returns the distance of the last
  // one.
  int Search(std::int64_t wanted);

  DeadlineNetwork& network_;
  Ticks tolerance_ = 1;
  std::uint32_t run_ = 0;
  std::vector<Mark> marks_;
  std::vector<std::int32_t> buckets_{};  // First node at each distance; -1 if there is none.
  int farthest_ = 0;
  std::vector<int> scanned_{};
};

// Cost scaling by push and relabel, after Goldberg and Tarjan ("Finding minimum-cost circulations
// by successive approximation", 1990), on arcs with convex costs. The times of the nodes are the
// prices. A phase makes the flow a circulation that agrees with the times up to a tolerance; the
// tolerance shrinks from phase to phase. Within a phase, flow that does not agree with the times is
// removed, which leaves nodes with too much or too little of it (excesses); pushes along arcs of
// negative reduced cost and relabels (later times) of nodes without such arcs then balance them.
class CostScaling {
 public:
  // The network must have its deadline set, and times that meet it with the shortest durations.
  explicit CostScaling(DeadlineNetwork& network);

  // Runs one phase.
  void Refine(Ticks tolerance);

  // Looks for times in whole ticks at which the flow is exactly optimal, in at most `sweeps`
  // passes. Returns false, with the times as before, when it found none.
  bool MakeTimesExact(int sweeps);

 private:
  // Raises times until all arcs with capacity left agree with them. Each sweep goes through the
  // activities in both directions. Returns true when nothing was left to raise.
  bool RaiseTimes(Ticks tolerance, int sweeps);
  bool RaiseBegin(int i, Ticks tolerance);
  bool RaiseEnd(int i, Ticks tolerance);
  // Repair times with which no flow could agree, because of waits and shortest durations, and
  // because of the deadline.
  void RestoreOrder(Ticks tolerance);
  void RestoreDeadline(Ticks tolerance);
  // Changes flows that do not agree with the times, which leaves excesses behind.
  void AgreeWithTimes(Ticks tolerance);

  void CollectExcesses();
  void Discharge(int at);
  // Each pushes excess along one kind of arc, as much as allowed, and returns the least reduced
  // cost of the arcs with capacity left that may not be used yet.
  Ticks PushToWaiting(int at);
  Ticks PushBackActivity(int at);
  Ticks PushActivity(int at);
  Ticks PushBackWaits(int at);
  void Move(int from, int to, Slope amount);

  DeadlineNetwork& network_;
  PriceUpdate price_update_;
  Ticks tolerance_ = 1;
  bool has_flow_ = false;     // Whether an earlier phase left a flow.
  std::vector<int> queue_{};  // Nodes with excess; those before index next_ are done.
  std::size_t next_ = 0;
  std::vector<char> is_queued_;
  std::vector<int> in_deficit_{};
  std::size_t relabels_ = 0;  // Relabels since the last price update.
};

}  // namespace zeus::pipeline::internal
