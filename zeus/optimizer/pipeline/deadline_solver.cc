// The least energy within a deadline is a linear program whose dual is a convex-cost circulation
// (DeadlineNetwork): the times of nodes are dual to the flow, and the flow through a computation is
// the price of its time. The solver starts from times that speed everything up alike, then refines
// flow and times by cost scaling (CostScaling) with a tolerance that shrinks from phase to phase,
// until times in whole ticks agree with the flow exactly. Independent of all that, IsOptimal()
// proves the result by weak duality before it is returned, so that a bug here becomes an error and
// not a wrong plan.
#include "zeus/optimizer/pipeline/deadline_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/cost_scaling.h"

namespace zeus::pipeline::internal {

// Proves by weak duality, in exact integers and from times and flows alone, that no durations
// within the deadline cost less. The times must keep every wait and the deadline, the flow must be
// a circulation, and the cost of the times must equal the lower bound that the flow gives for all
// durations.
bool IsOptimal(const DeadlineNetwork& network, const CostTable& costs, Ticks deadline);

namespace {

__extension__ using Wide = __int128;

// Returns by how much the cost at `duration` exceeds that at the longest duration.
Wide CostAbove(const ConvexCost& cost, Ticks duration) {
  Wide sum = 0;
  for (std::size_t k = cost.times.size(); k-- > 1 && cost.times[k] > duration;)
    sum += Wide{cost.slopes[k]} * (cost.times[k] - std::max(cost.times[k - 1], duration));
  return sum;
}

// Returns the minimum of cost + flow * duration over all durations. It is where a further tick
// would save less than the flow charges for it.
Wide LeastCharged(const ConvexCost& cost, Slope flow) {
  std::size_t k = 0;
  while (k + 1 < cost.times.size() && cost.slopes[k + 1] > flow) ++k;
  return CostAbove(cost, cost.times[k]) + Wide{flow} * cost.times[k];
}

bool KeepsWaits(const DeadlineNetwork& network, Ticks deadline) {
  const int whole = network.deadline_activity();
  for (int i = 0; i <= whole; ++i) {
    const Ticks shortest = i < whole ? network.curve(i).times.front() : -deadline * network.scale;
    if (network.Gap(i) < shortest || network.Gap(i) % network.scale != 0) return false;
    const auto [first, last] = network.WaitsFrom(i);
    for (int wait = first; wait < last; ++wait) {
      if (network.node(network.WaitTo(wait)).time < network.node(DeadlineNetwork::End(i)).time)
        return false;
    }
  }
  return true;
}

bool IsCirculation(const DeadlineNetwork& network) {
  std::vector<Wide> excess(network.nodes.size(), 0);
  const auto move = [&](int from, int to, Slope flow) {
    excess[static_cast<std::size_t>(from)] -= flow;
    excess[static_cast<std::size_t>(to)] += flow;
    return flow >= 0;
  };
  bool positive = true;
  for (int i = 0; i < network.size(); ++i) {
    positive &= move(DeadlineNetwork::Begin(i), DeadlineNetwork::End(i), network.activity(i).flow);
    const auto [first, last] = network.WaitsFrom(i);
    for (int wait = first; wait < last; ++wait)
      positive &= move(DeadlineNetwork::End(i), network.WaitTo(wait), network.WaitFlow(wait));
  }
  return positive && std::ranges::all_of(excess, [](Wide left) { return left == 0; });
}

}  // namespace

bool IsOptimal(const DeadlineNetwork& network, const CostTable& costs, Ticks deadline) {
  if (!KeepsWaits(network, deadline) || !IsCirculation(network)) return false;
  Wide cost = 0;
  Wide bound = -Wide{network.activity(network.deadline_activity()).flow} * deadline;
  for (int i = 0; i < network.deadline_activity(); ++i) {
    const ConvexCost& curve = costs.costs[static_cast<std::size_t>(network.activity(i).curve)];
    cost += CostAbove(curve, std::min(network.Gap(i) / network.scale, curve.longest()));
    bound += LeastCharged(curve, network.activity(i).flow);
  }
  return cost == bound;
}

}  // namespace zeus::pipeline::internal

namespace zeus::pipeline {
namespace {

using internal::CostScaling;
using internal::DeadlineNetwork;
using internal::FlowCurve;

// Returns durations that are all at the same share of their range: 0 is shortest, 1 is longest.
std::vector<Ticks> DurationsAt(const DeadlineNetwork& network, double share) {
  std::vector<Ticks> durations;
  for (int i = 0; i < network.deadline_activity(); ++i) {
    const FlowCurve& curve = network.curve(i);
    const Ticks range = curve.times.back() - curve.times.front();
    durations.push_back(curve.times.front() +
                        static_cast<Ticks>(share * static_cast<double>(range)));
  }
  return durations;
}

// Sets each node halfway between its earliest and its latest time.
void Centre(DeadlineNetwork& network, std::span<const Ticks> durations, Ticks deadline) {
  const int whole = network.deadline_activity();
  network.SetEarliestTimes(durations);
  std::vector<Ticks> latest_begin(static_cast<std::size_t>(whole) + 1, deadline);
  for (int i = whole; i-- > 0;) {
    Ticks latest_end = deadline;
    const auto [first, last] = network.WaitsFrom(i);
    for (int wait = first; wait < last; ++wait)
      latest_end =
          std::min(latest_end, latest_begin[static_cast<std::size_t>(network.WaitTo(wait) / 2)]);
    const auto index = static_cast<std::size_t>(i);
    latest_begin[index] = latest_end - durations[index];
  }
  for (int i = 0; i < whole; ++i) {
    const auto index = static_cast<std::size_t>(i);
    Ticks& begin = network.node(DeadlineNetwork::Begin(i)).time;
    begin += (latest_begin[index] - begin) / 2;
    network.node(DeadlineNetwork::End(i)).time = begin + durations[index];
  }
  network.node(DeadlineNetwork::Begin(whole)).time = deadline;
}

// Sets the times to start from: all computations at the same share of their range, the largest one
// that meets the deadline.
void SetFirstTimes(DeadlineNetwork& network, Ticks deadline) {
  constexpr int kHalvings = 12;
  double fast = 0;
  double slow = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double share = (fast + slow) / 2;
    const bool in_time = network.SetEarliestTimes(DurationsAt(network, share)) <= deadline;
    (in_time ? fast : slow) = share;
  }
  Centre(network, DurationsAt(network, fast), deadline);
}

// Returns the tolerance of the first phase: a small part of an average activity's range. Coarser
// phases cost more than they help, because they lose more of the first times than they find.
Ticks FirstTolerance(const DeadlineNetwork& network) {
  constexpr double kShare = 1.0 / 512;
  double range = 0;
  for (int i = 0; i < network.deadline_activity(); ++i) {
    const FlowCurve& curve = network.curve(i);
    range += static_cast<double>(curve.times.back() - curve.times.front());
  }
  return std::max<Ticks>(1, static_cast<Ticks>(kShare * range / std::max(1, network.size() - 1)));
}

// Refines the flow with ever smaller tolerances until times in whole ticks are exactly optimal.
// Returns false when even the smallest tolerance does not give such times.
bool Optimise(DeadlineNetwork& network) {
  constexpr Ticks kFiner = 16;
  constexpr int kSweeps = 40;
  CostScaling scaling(network);
  for (Ticks tolerance = FirstTolerance(network);;
       tolerance = std::max<Ticks>(1, tolerance / kFiner)) {
    scaling.Refine(tolerance);
    const bool is_last = tolerance == 1;
    if (scaling.MakeTimesExact(is_last ? 2 * network.size() : kSweeps)) return true;
    if (is_last) return false;
  }
}

DeadlineSolution MakeSolution(const DeadlineNetwork& network, const Problem& problem,
                              const CostTable& costs, Ticks time) {
  DeadlineSolution solution{.time = time};
  solution.durations.resize(problem.computations.size());
  Joules energy{};
  for (int i = 0; i < network.deadline_activity(); ++i) {
    const auto computation =
        static_cast<std::size_t>(network.computation_of[static_cast<std::size_t>(i)]);
    const Ticks longest = network.curve(i).times.back();
    const Ticks duration = std::min(network.Gap(i), longest) / network.scale;
    solution.durations[computation] = duration;
    energy += costs.At(problem.computations[computation].kind, duration);
  }
  const Seconds seconds = costs.tick * static_cast<double>(time);
  solution.energy = energy + problem.blocking_power * seconds * static_cast<double>(problem.stages);
  return solution;
}

double InSeconds(const CostTable& costs, Ticks ticks) {
  return costs.tick.count() * static_cast<double>(ticks);
}

}  // namespace

Result<DeadlineSolution> SolveDeadline(const Problem& problem, const CostTable& costs,
                                       Ticks deadline) {
  DeadlineNetwork network(problem, costs);
  const Ticks fastest = network.SetEarliestTimes(DurationsAt(network, 0)) / network.scale;
  if (deadline < fastest)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("no plan meets a deadline of {:.6g} s: the fastest iteration takes "
                             "{:.6g} s",
                             InSeconds(costs, deadline), InSeconds(costs, fastest))};
  const Ticks slowest = network.SetEarliestTimes(DurationsAt(network, 1)) / network.scale;
  if (deadline >= slowest) return MakeSolution(network, problem, costs, slowest);

  network.SetDeadline(deadline);
  SetFirstTimes(network, deadline * network.scale);
  if (!Optimise(network) || !internal::IsOptimal(network, costs, deadline))
    return Error{ErrorCode::kInternal,
                 fmt::format("the plan for a deadline of {:.6g} s is not the best one: please "
                             "report this problem with its profile",
                             InSeconds(costs, deadline))};
  return MakeSolution(network, problem, costs, deadline);
}

}  // namespace zeus::pipeline
