#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/problem.h"

// The flow problem behind SolveDeadline(); no part of the interface.
namespace zeus::pipeline::internal {

inline constexpr Slope kUnlimited = std::numeric_limits<Slope>::max() / 4;

// The cost of a kind of activity as the flow sees it: with more flow than slopes[k] a tick of
// times[k-1] .. times[k] is no longer worth its energy. slopes ends with 0 and starts with
// kUnlimited, since no flow makes an activity shorter than times[0].
struct FlowCurve {
  std::vector<Ticks> times{};
  std::vector<Slope> slopes{};
};

// An arc from the beginning (node 2i) to the end (node 2i+1) of an activity. Between two slopes of
// its curve its flow agrees with one duration only; on a slope with a range of them.
struct FlowActivity {
  Slope flow = 0;
  Ticks longest = 0;   // The durations that agree with the flow. More flow needs the gap between
  Ticks shortest = 0;  // its nodes to be at most `shortest`, less needs at least `longest`.
  std::int32_t piece = 0;  // slopes[piece + 1] <= flow < slopes[piece]
  std::int32_t curve = 0;
};

struct FlowNode {
  Ticks time = 0;    // Times DeadlineNetwork::scale.
  Slope excess = 0;  // What flows in beyond what flows out.
};

// Who waits for whom: an arc without cost or limit, from the end of one activity to the beginning
// of another.
struct IncomingWait {
  std::int32_t wait = 0;  // Index into wait_to and wait_flow.
  std::int32_t from = 0;  // Node.
};

// The convex-cost circulation that is the dual of "least energy within a deadline". Activities are
// in topological order, so that neighbours in time are neighbours in memory. The last one is the
// deadline itself: it leads from the end of everything back to the beginning of everything and
// lasts minus the deadline.
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
  const FlowCurve& CurveOf(int i) const {
    return curves[static_cast<std::size_t>(activity(i).curve)];
  }
  Ticks Gap(int i) const { return node(End(i)).time - node(Begin(i)).time; }

  // The waits from the end of an activity: indices into wait_to and wait_flow.
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

  // How much the flow can change while it agrees with the present shortest / longest duration.
  Slope RoomForMore(int i) const;
  Slope RoomForLess(int i) const;
  // By no more than the room. Excesses are the caller's.
  void AddFlow(int i, Slope more);
  void TakeFlow(int i, Slope less);
  // Moves the flow as little as possible to where it agrees with the gap, give or take.
  void AgreeWithGap(int i, Ticks tolerance);

  // Sets all nodes to the earliest times with the given durations; returns the time of the whole.
  Ticks SetEarliestTimes(std::span<const Ticks> durations);

  // Times are multiplied by this, more than there are nodes: an error of one unit in each is less
  // than a tick in all.
  Ticks scale = 1;
  std::vector<FlowCurve> curves{};  // As the kinds of the problem, then the deadline's.
  std::vector<FlowActivity> activities{};
  std::vector<FlowNode> nodes{};
  std::vector<int> computation_of{};  // Of each activity but the deadline's.
  std::vector<std::int32_t> first_wait{};
  std::vector<std::int32_t> wait_to{};  // Nodes.
  std::vector<Slope> wait_flow{};
  std::vector<std::int32_t> first_incoming{};
  std::vector<IncomingWait> incoming{};

 private:
  void AddActivities(const Problem& problem, const CostTable& costs);
  void AddWaits(const Problem& problem);
  void Refresh(FlowActivity& activity) const;
};

}  // namespace zeus::pipeline::internal
