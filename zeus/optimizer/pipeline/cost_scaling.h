#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/problem.h"

// The flow problem behind SolveDeadline(); internal to the solver.
namespace zeus::pipeline::internal {

inline constexpr Slope kUnlimited = std::numeric_limits<Slope>::max() / 4;

// The cost of a kind of activity as the flow sees it: the flow is the price of time, and with more
// flow than slopes[k] the ticks from times[k-1] to times[k] are not worth the energy that they
// save. slopes starts with kUnlimited, since no flow makes an activity shorter than times[0], and
// ends with 0.
struct FlowCurve {
  std::vector<Ticks> times{};
  std::vector<Slope> slopes{};
};

// An arc from the beginning (node 2i) to the end (node 2i+1) of an activity i. A flow between two
// slopes of the curve agrees with one duration only, a flow equal to a slope with a range of them.
struct FlowActivity {
  Slope flow = 0;
  Ticks longest = 0;   // Range of the durations that agree with the flow. The flow may grow if the
  Ticks shortest = 0;  // gap between the nodes is at most `shortest`, shrink if at least `longest`.
  std::int32_t piece = 0;  // slopes[piece + 1] <= flow < slopes[piece]
  std::int32_t curve = 0;
};

struct FlowNode {
  Ticks time = 0;    // In ticks multiplied by DeadlineNetwork::scale.
  Slope excess = 0;  // Inflow minus outflow.
};

// A dependency: an arc without cost or limit, from the end of one activity to the beginning of
// another.
struct IncomingWait {
  std::int32_t wait = 0;  // Index into wait_to and wait_flow.
  std::int32_t from = 0;  // Node at which it starts.
};

// The convex-cost circulation that is the dual of "least energy within a deadline". Activities are
// in topological order, so that neighbours in time are neighbours in memory. The last activity is
// the deadline itself: it leads from the end of the iteration back to its beginning and has the
// negative deadline as its duration.
struct DeadlineNetwork {
  DeadlineNetwork(const Problem& problem, const CostTable& costs);

  void SetDeadline(Ticks deadline);

  int size() const { return static_cast<int>(activities.size()); }
  int deadline_activity() const { return size() - 1; }
  static int Begin(int activity) { return 2 * activity; }
  static int End(int activity) { return 2 * activity + 1; }

  FlowNode& node(int at) { return nodes[static_cast<std::size_t>(at)]; }
  const FlowNode& node(int at) const { return nodes[static_cast<std::size_t>(at)]; }
  FlowActivity& activity(int i) { return activities[static_cast<std::size_t>(i)]; }
  const FlowActivity& activity(int i) const { return activities[static_cast<std::size_t>(i)]; }
  const FlowCurve& curve(int i) const {
    return curves[static_cast<std::size_t>(activity(i).curve)];
  }
  Ticks Gap(int i) const { return node(End(i)).time - node(Begin(i)).time; }

  // Returns the range [first, second) of the waits from the end of an activity: indices into
  // wait_to and wait_flow.
  std::pair<int, int> WaitsFrom(int i) const {
    return {first_wait[static_cast<std::size_t>(i)], first_wait[static_cast<std::size_t>(i) + 1]};
  }
  std::span<const IncomingWait> WaitsFor(int i) const {
    const auto from = static_cast<std::size_t>(first_incoming[static_cast<std::size_t>(i)]);
    const auto to = static_cast<std::size_t>(first_incoming[static_cast<std::size_t>(i) + 1]);
    return {incoming.data() + from, to - from};
  }
  int WaitTo(int wait) const { return wait_to[static_cast<std::size_t>(wait)]; }
  Slope& WaitFlow(int wait) { return wait_flow[static_cast<std::size_t>(wait)]; }
  Slope WaitFlow(int wait) const { return wait_flow[static_cast<std::size_t>(wait)]; }

  // By how much the flow can grow while it agrees with the present shortest duration, and by how
  // much it can shrink while it agrees with the present longest one.
  Slope RoomForMore(int i) const;
  Slope RoomForLess(int i) const;
  // Change the flow, by no more than the room. The caller keeps the excesses of the nodes.
  void AddFlow(int i, Slope more);
  void RemoveFlow(int i, Slope less);
  // Changes the flow as little as possible so that it agrees with the gap up to the tolerance.
  void AgreeWithGap(int i, Ticks tolerance);

  // Sets all nodes to the earliest times with the given durations; returns the time of the
  // iteration.
  Ticks SetEarliestTimes(std::span<const Ticks> durations);

  // All times are multiplied by this number. It is larger than the number of nodes, so that errors
  // of one unit at every node sum up to less than a tick.
  Ticks scale = 1;
  std::vector<FlowCurve> curves{};  // One for each kind of the problem, then the deadline's.
  std::vector<FlowActivity> activities{};
  std::vector<FlowNode> nodes{};
  std::vector<int> computation_of{};  // Computation of each activity except the deadline.
  std::vector<std::int32_t> first_wait{};
  std::vector<std::int32_t> wait_to{};  // Nodes at which waits end.
  std::vector<Slope> wait_flow{};
  std::vector<std::int32_t> first_incoming{};
  std::vector<IncomingWait> incoming{};

 private:
  void AddActivities(const Problem& problem, const CostTable& costs);
  void AddWaits(const Problem& problem);
  void Refresh(FlowActivity& activity) const;
};

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
