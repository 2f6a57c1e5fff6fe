#pragma once

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

}  // namespace zeus::pipeline::internal
