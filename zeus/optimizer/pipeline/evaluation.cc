#include "zeus/optimizer/pipeline/evaluation.h"

#include <algorithm>
#include <cstddef>

namespace zeus::pipeline {
namespace {

template <class Better>
std::vector<int> BestPoints(const Problem& problem, Better better) {
  std::vector<int> of_kind;
  for (const ComputationKind& kind : problem.kinds)
    of_kind.push_back(
        static_cast<int>(std::ranges::min_element(kind.points, better) - kind.points.begin()));
  std::vector<int> choice;
  for (const Computation& computation : problem.computations)
    choice.push_back(of_kind[At(computation.kind)]);
  return choice;
}

}  // namespace

Evaluation Evaluate(const Problem& problem, std::span<const int> choice,
                    std::span<const Seconds> extra) {
  Evaluation evaluation;
  evaluation.starts.assign(problem.computations.size(), Seconds(0));
  for (const int computation : problem.graph.topological_order()) {
    const auto at = At(computation);
    const ComputationKind& kind = problem.Kind(computation);
    const OperatingPoint& point = kind.points[At(choice[at])];
    evaluation.energy += EffectiveEnergy(problem, kind, point);
    const Seconds end =
        evaluation.starts[at] + point.time + (extra.empty() ? Seconds(0) : extra[at]);
    evaluation.time = std::max(evaluation.time, end);
    for (const int next : problem.graph.Successors(computation)) {
      Seconds& start = evaluation.starts[At(next)];
      start = std::max(start, end);
    }
  }
  evaluation.energy +=
      problem.blocking_power * evaluation.time * static_cast<double>(problem.stages);
  return evaluation;
}

std::vector<int> FastestChoice(const Problem& problem) {
  return BestPoints(problem, [](const OperatingPoint& a, const OperatingPoint& b) {
    return a.time != b.time ? a.time < b.time : a.energy < b.energy;
  });
}

std::vector<int> HighestClockChoice(const Problem& problem) {
  return BestPoints(
      problem, [](const OperatingPoint& a, const OperatingPoint& b) { return a.clock > b.clock; });
}

}  // namespace zeus::pipeline
