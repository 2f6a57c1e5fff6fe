#include "zeus/optimizer/pipeline/deadline/deadline_certificate.h"

#include <algorithm>
#include <vector>

namespace zeus::pipeline::internal {
namespace {

__extension__ using Wide = __int128;

// What the activity costs beyond its longest duration.
Wide CostAbove(const ConvexCost& cost, Ticks duration) {
  Wide sum = 0;
  for (std::size_t k = cost.times.size(); k-- > 1 && cost.times[k] > duration;)
    sum += Wide{cost.slopes[k]} * (cost.times[k] - std::max(cost.times[k - 1], duration));
  return sum;
}

// The least of cost + flow * duration over all durations: slower while a tick saves more than the
// flow charges.
Wide LeastCharged(const ConvexCost& cost, Slope flow) {
  std::size_t k = 0;
  while (k + 1 < cost.times.size() && cost.slopes[k + 1] > flow) ++k;
  return CostAbove(cost, cost.times[k]) + Wide{flow} * cost.times[k];
}

bool KeepsWaits(const DeadlineNetwork& network, Ticks deadline) {
  const int whole = network.deadline_activity();
  for (int i = 0; i <= whole; ++i) {
    const Ticks shortest = i < whole ? network.CurveOf(i).times.front() : -deadline * network.scale;
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
