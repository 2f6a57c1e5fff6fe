#include "zeus/optimizer/pipeline/deadline/deadline_network.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace zeus::pipeline::internal {
namespace {

// Returns a power of two above the number of nodes, or less if sums of times would overflow.
Ticks ScaleFor(const Problem& problem, const CostTable& costs) {
  constexpr double kLargestTime = 0x1p60;
  double total = 1;
  for (const Computation& computation : problem.computations)
    total += static_cast<double>(costs.costs[static_cast<std::size_t>(computation.kind)].longest());
  auto scale = static_cast<Ticks>(std::bit_ceil(2 * problem.computations.size() + 4));
  while (scale > 1 && total * static_cast<double>(scale) > kLargestTime) scale /= 2;
  return scale;
}

}  // namespace

DeadlineNetwork::DeadlineNetwork(const Problem& problem, const CostTable& costs)
    : scale(ScaleFor(problem, costs)) {
  AddActivities(problem, costs);
  AddWaits(problem);
  nodes.resize(2 * activities.size());
}

void DeadlineNetwork::AddActivities(const Problem& problem, const CostTable& costs) {
  for (const ConvexCost& cost : costs.costs) {
    FlowCurve curve{.times = cost.times, .slopes = cost.slopes};
    for (Ticks& time : curve.times) time *= scale;
    curve.slopes.front() = kUnlimited;
    curve.slopes.push_back(0);
    curves.push_back(std::move(curve));
  }
  curves.push_back({.times = {0}, .slopes = {kUnlimited, 0}});

  const auto order = problem.graph.topological_order();
  computation_of.assign(order.begin(), order.end());
  for (const int computation : order) {
    const int kind = problem.computations[static_cast<std::size_t>(computation)].kind;
    const auto pieces = costs.costs[static_cast<std::size_t>(kind)].times.size();
    activities.push_back({.piece = static_cast<std::int32_t>(pieces) - 1, .curve = kind});
  }
  activities.push_back({.curve = static_cast<std::int32_t>(curves.size()) - 1});
  for (FlowActivity& activity : activities) Refresh(activity);
}

void DeadlineNetwork::AddWaits(const Problem& problem) {
  std::vector<int> position(computation_of.size());
  for (std::size_t i = 0; i < computation_of.size(); ++i)
    position[static_cast<std::size_t>(computation_of[i])] = static_cast<int>(i);

  const int whole = deadline_activity();
  first_wait.push_back(0);
  for (const int computation : computation_of) {
    const auto successors = problem.graph.Successors(computation);
    for (const int next : successors)
      wait_to.push_back(Begin(position[static_cast<std::size_t>(next)]));
    if (successors.empty()) wait_to.push_back(Begin(whole));
    first_wait.push_back(static_cast<std::int32_t>(wait_to.size()));
  }
  for (const int computation : computation_of) {
    if (problem.graph.Predecessors(computation).empty())
      wait_to.push_back(Begin(position[static_cast<std::size_t>(computation)]));
  }
  first_wait.push_back(static_cast<std::int32_t>(wait_to.size()));
  wait_flow.assign(wait_to.size(), 0);

  first_incoming.assign(activities.size() + 1, 0);
  for (const std::int32_t to : wait_to) ++first_incoming[static_cast<std::size_t>(to / 2) + 1];
  for (std::size_t i = 1; i < first_incoming.size(); ++i)
    first_incoming[i] += first_incoming[i - 1];
  std::vector<std::int32_t> next = first_incoming;
  incoming.resize(wait_to.size());
  for (int i = 0; i < size(); ++i) {
    const auto [from, to] = WaitsFrom(i);
    for (int wait = from; wait < to; ++wait) {
      std::int32_t& place = next[static_cast<std::size_t>(WaitTo(wait) / 2)];
      incoming[static_cast<std::size_t>(place++)] = {.wait = wait, .from = End(i)};
    }
  }
}

void DeadlineNetwork::SetDeadline(Ticks deadline) {
  curves.back().times.front() = -deadline * scale;
  Refresh(activities.back());
}

void DeadlineNetwork::Refresh(FlowActivity& activity) const {
  const FlowCurve& curve = curves[static_cast<std::size_t>(activity.curve)];
  const auto piece = static_cast<std::size_t>(activity.piece);
  activity.shortest = curve.times[piece];
  const bool on_slope = activity.flow == curve.slopes[piece + 1] && activity.flow > 0;
  activity.longest = curve.times[on_slope ? piece + 1 : piece];
}

Slope DeadlineNetwork::RoomForMore(int i) const {
  return curve(i).slopes[static_cast<std::size_t>(activity(i).piece)] - activity(i).flow;
}

Slope DeadlineNetwork::RoomForLess(int i) const {
  const FlowActivity& at = activity(i);
  const std::vector<Slope>& slopes = curve(i).slopes;
  const auto piece = static_cast<std::size_t>(at.piece);
  if (at.flow == 0) return 0;
  return at.flow - slopes[at.flow > slopes[piece + 1] ? piece + 1 : piece + 2];
}

void DeadlineNetwork::AddFlow(int i, Slope more) {
  FlowActivity& at = activity(i);
  at.flow += more;
  if (at.flow == curve(i).slopes[static_cast<std::size_t>(at.piece)] && at.piece > 0) --at.piece;
  Refresh(at);
}

void DeadlineNetwork::RemoveFlow(int i, Slope less) {
  FlowActivity& at = activity(i);
  if (at.flow == curve(i).slopes[static_cast<std::size_t>(at.piece) + 1]) ++at.piece;
  at.flow -= less;
  Refresh(at);
}

void DeadlineNetwork::AgreeWithGap(int i, Ticks tolerance) {
  const Ticks gap = Gap(i);
  while (activity(i).piece > 0 && gap < activity(i).shortest - tolerance)
    AddFlow(i, RoomForMore(i));
  while (activity(i).flow > 0 && gap > activity(i).longest + tolerance)
    RemoveFlow(i, RoomForLess(i));
}

Ticks DeadlineNetwork::SetEarliestTimes(std::span<const Ticks> durations) {
  const int whole = deadline_activity();
  node(End(whole)).time = 0;
  for (int i = 0; i <= whole; ++i) {
    Ticks begin = 0;
    for (const IncomingWait& wait : WaitsFor(i)) begin = std::max(begin, node(wait.from).time);
    node(Begin(i)).time = begin;
    if (i < whole) node(End(i)).time = begin + durations[static_cast<std::size_t>(i)];
  }
  return node(Begin(whole)).time;
}

}  // namespace zeus::pipeline::internal
