#include <fmt/format.h>

#include <algorithm>

#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {
namespace {

// A circle among those that were never free of predecessors: walk backwards until one repeats.
std::vector<int> FindCircle(const ComputationGraph& graph, const std::vector<int>& waiting) {
  const auto stuck = [&](int computation) { return waiting[At(computation)] > 0; };
  int at = 0;
  while (!stuck(at)) ++at;
  std::vector<int> seen_at(waiting.size(), -1);
  std::vector<int> walk;
  while (seen_at[At(at)] < 0) {
    seen_at[At(at)] = static_cast<int>(walk.size());
    walk.push_back(at);
    at = *std::ranges::find_if(graph.Predecessors(at), stuck);
  }
  walk.erase(walk.begin(), walk.begin() + seen_at[At(at)]);
  return walk;
}

std::string Describe(const std::vector<int>& circle, const std::function<std::string(int)>& name) {
  constexpr std::size_t kShown = 8;
  std::string text = name(circle.front());
  for (std::size_t i = 1; i < std::min(circle.size(), kShown); ++i)
    text += " waits for " + name(circle[i]);
  if (circle.size() > kShown) text += fmt::format(" waits for {} more", circle.size() - kShown);
  return text + " waits for " + name(circle.front());
}

}  // namespace

template <class From, class To>
ComputationGraph::Neighbours ComputationGraph::Sorted(int computations,
                                                      const std::vector<std::pair<int, int>>& edges,
                                                      From from, To to) {
  Neighbours neighbours;
  neighbours.first.assign(At(computations) + 1, 0);
  for (const auto& edge : edges) ++neighbours.first[At(edge.*from) + 1];
  for (std::size_t i = 1; i < neighbours.first.size(); ++i)
    neighbours.first[i] += neighbours.first[i - 1];
  std::vector<std::size_t> next = neighbours.first;
  neighbours.ends.resize(edges.size());
  for (const auto& edge : edges) neighbours.ends[next[At(edge.*from)]++] = edge.*to;
  return neighbours;
}

Status ComputationGraph::Sort(const std::function<std::string(int)>& name) {
  const int computations = static_cast<int>(successors_.first.size()) - 1;
  std::vector<int> waiting(At(computations));
  for (int i = 0; i < computations; ++i) {
    waiting[At(i)] = static_cast<int>(Predecessors(i).size());
    if (Predecessors(i).empty()) order_.push_back(i);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {
    for (const int next : Successors(order_[at]))
      if (--waiting[At(next)] == 0) order_.push_back(next);
  }
  if (static_cast<int>(order_.size()) == computations) return Ok();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the schedule can never finish: {}", Describe(FindCircle(*this, waiting), name))};
}

Result<ComputationGraph> ComputationGraph::Of(int computations,
                                              const std::vector<std::pair<int, int>>& edges,
                                              const std::function<std::string(int)>& name) {
  for (const auto& [from, to] : edges) {
    if (from < 0 || from >= computations || to < 0 || to >= computations)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the edge from {} to {} leads out of the {} computations", from, to,
                               computations)};
  }
  using Edge = std::pair<int, int>;
  ComputationGraph graph;
  graph.successors_ = Sorted(computations, edges, &Edge::first, &Edge::second);
  graph.predecessors_ = Sorted(computations, edges, &Edge::second, &Edge::first);
  ZEUS_RETURN_IF_ERROR(graph.Sort(name));
  return graph;
}

}  // namespace zeus::pipeline
