#include "zeus/optimizer/pipeline/frontier/activity_network.h"

#include <algorithm>

namespace zeus::pipeline {
namespace {

const ConvexCost& FindCost(const Problem& problem, const CostTable& costs, int computation) {
  return costs.costs[At(problem.computations[At(computation)].kind)];
}

std::vector<Ticks> EarliestBegins(const ComputationGraph& graph, std::span<const Ticks> durations) {
  std::vector<Ticks> begins(At(graph.size()), 0);
  for (const int computation : graph.topological_order())
    for (const int next : graph.Successors(computation))
      begins[At(next)] =
          std::max(begins[At(next)], begins[At(computation)] + durations[At(computation)]);
  return begins;
}

// Fills a network with the arcs of a problem. Computations are ranked by the time they begin.
class Builder {
 public:
  Builder(ActivityNetwork& network, const Problem& problem, const CostTable& costs)
      : network_(network), problem_(problem), costs_(costs), graph_(problem.graph) {}

  void Build() {
    RankComputations();
    network_.nodes.resize(2 * rank_.size() + 2);
    AddActivities();
    AddWaits();
    AddIncidences();
  }

 private:
  int Begin(int computation) const { return 2 + 2 * rank_[At(computation)]; }
  int End(int computation) const { return 3 + 2 * rank_[At(computation)]; }

  void RankComputations() {
    for (int i = 0; i < graph_.size(); ++i)
      durations_.push_back(FindCost(problem_, costs_, i).longest());
    begins_ = EarliestBegins(graph_, durations_);
    // Computations without duration may begin at the same time: they stay in topological order.
    order_.assign(graph_.topological_order().begin(), graph_.topological_order().end());
    std::ranges::stable_sort(order_, {}, [&](int i) { return begins_[At(i)]; });
    rank_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) rank_[At(order_[i])] = static_cast<int>(i);
  }

  void AddActivities() {
    for (const int i : order_) {
      const ConvexCost& cost = FindCost(problem_, costs_, i);
      const Ticks begin = begins_[At(i)];
      const Ticks end = begin + durations_[At(i)];
      network_.node(Begin(i)).anchor = begin;
      network_.node(End(i)).anchor = end;
      network_.longest = std::max(network_.longest, end);
      network_.arcs.push_back({.duration = durations_[At(i)], .ends = {Begin(i), End(i)}});
      network_.activities.push_back(
          {.cost = &cost, .breakpoint = static_cast<int>(cost.times.size()) - 1, .computation = i});
    }
    network_.node(network_.sink()).anchor = network_.longest;
    for (int activity = 0; activity < graph_.size(); ++activity) network_.SetBounds(activity);
  }

  void AddWaits() {
    for (const int i : order_)
      if (graph_.Predecessors(i).empty())
        network_.arcs.push_back({.ends = {network_.source(), Begin(i)}});
    for (const int i : order_) {
      for (const int next : graph_.Successors(i))
        network_.arcs.push_back({.ends = {End(i), Begin(next)}});
      if (graph_.Successors(i).empty())
        network_.arcs.push_back({.ends = {End(i), network_.sink()}});
    }
  }

  void AddIncidences() {
    for (const NetworkArc& arc : network_.arcs)
      for (const int end : arc.ends) ++network_.node(end).end;
    std::int32_t sum = 0;
    for (NetworkNode& node : network_.nodes) {
      sum += node.end;
      node.first = node.end = sum - node.end;
    }
    network_.incidences.resize(2 * network_.arcs.size());
    for (int way = 0; way < static_cast<int>(2 * network_.arcs.size()); ++way) {
      const NetworkArc& arc = network_.arc(ArcNumber(way));
      network_.incidences[At(network_.node(arc.From(way)).end++)] = {way, arc.To(way)};
    }
  }

  ActivityNetwork& network_;
  const Problem& problem_;
  const CostTable& costs_;
  const ComputationGraph& graph_;
  std::vector<Ticks> durations_{};
  std::vector<Ticks> begins_{};
  std::vector<int> order_{};
  std::vector<int> rank_{};  // Place of each computation in order_.
};

}  // namespace

ActivityNetwork::ActivityNetwork(const Problem& problem, const CostTable& costs) {
  Builder(*this, problem, costs).Build();
}

void ActivityNetwork::SetBounds(int activity) {
  Activity& state = activities[At(activity)];
  NetworkArc& arc = arcs[At(activity)];
  const ConvexCost& cost = *state.cost;
  const std::size_t k = At(state.breakpoint);
  // By complementary slackness the flow lies between the slopes on both sides of the duration.
  const Slope flow = state.lower + arc.residual[1];
  const Slope above = k + 1 < cost.times.size() ? cost.slopes[k + 1] : 0;
  Slope below = above;
  if (arc.duration == cost.times[k]) below = k == 0 ? kUnlimited : cost.slopes[k];
  state.lower = above;
  arc.residual = {below - flow, flow - above};
}

}  // namespace zeus::pipeline
