// The steady state of a pipeline repeats with every microbatch. Pipelines with 4 and with 5 times
// as many microbatches as stages are solved whole. If their frontiers have equally many points,
// point i of the long pipeline lies on the line through points i of both, in time (whole ticks) and
// in energy. The same rule must give the frontier at half of the microbatches exactly as it is
// solved there; otherwise it is not used.
#include "zeus/optimizer/pipeline/periodic_frontier.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace zeus::pipeline {
namespace {

// Gives the computations of `resized` the kinds of `problem`.
void CopyKinds(const Problem& problem, Problem& resized) {
  std::map<std::pair<int, std::string>, int> numbers;
  for (const ComputationKind& kind : problem.kinds)
    numbers.emplace(std::pair(kind.stage, kind.instruction), static_cast<int>(numbers.size()));
  for (Computation& computation : resized.computations) {
    const ComputationKind& kind = resized.kinds[At(computation.kind)];
    computation.kind = numbers.at({kind.stage, kind.instruction});
  }
  resized.kinds = problem.kinds;
  resized.name = problem.name;
  resized.quantum = problem.quantum;
}

Result<Problem> Resized(const Problem& problem, std::string_view schedule, int microbatches) {
  PipelineProfile profile{.stages = problem.stages, .blocking_power = problem.blocking_power};
  for (const ComputationKind& kind : problem.kinds)
    profile.instructions.push_back({kind.stage, kind.instruction, kind.points});
  ZEUS_TRY(const Schedule made,
           MakeSchedule(schedule, {.stages = problem.stages, .microbatches = microbatches}));
  ZEUS_TRY(Problem resized, MakeProblem(profile, made));
  CopyKinds(problem, resized);
  return resized;
}

// Returns for each computation of `a` the one at the same place of the same stage of `b`; empty
// when the stages do not do the same in the same order.
std::vector<int> Match(const Problem& a, const Problem& b) {
  std::vector<int> match(a.computations.size(), -1);
  for (std::size_t stage = 0; stage < a.stage_order.size(); ++stage) {
    if (a.stage_order[stage].size() != b.stage_order[stage].size()) return {};
    for (std::size_t i = 0; i < a.stage_order[stage].size(); ++i) {
      const Computation& here = a.computations[At(a.stage_order[stage][i])];
      const Computation& there = b.computations[At(b.stage_order[stage][i])];
      if (here.kind != there.kind || here.microbatch != there.microbatch) return {};
      match[At(a.stage_order[stage][i])] = b.stage_order[stage][i];
    }
  }
  if (std::ranges::find(match, -1) != match.end()) return {};
  return match;
}

bool AreTheSame(const Problem& a, const Problem& b) {
  if (a.computations.size() != b.computations.size() || a.graph.edges() != b.graph.edges())
    return false;
  const std::vector<int> match = Match(a, b);
  if (match.empty()) return false;
  for (int i = 0; i < a.graph.size(); ++i) {
    std::vector<int> ours;
    for (const int next : a.graph.Successors(i)) ours.push_back(match[At(next)]);
    const auto successors = b.graph.Successors(match[At(i)]);
    if (!std::ranges::is_permutation(ours, successors)) return false;
  }
  return true;
}

}  // namespace

std::optional<ProblemOfSize> Resizable(const Problem& problem) {
  for (const std::string_view schedule : {"1f1b", "gpipe"}) {
    const Result<Problem> again = Resized(problem, schedule, problem.microbatches);
    if (!again.ok() || !AreTheSame(problem, again.value())) continue;
    return
        [&problem, schedule](int microbatches) { return Resized(problem, schedule, microbatches); };
  }
  return std::nullopt;
}

namespace {

// Numbers of microbatches that are solved, in multiples of the stages. With 3 times the stages, the
// hull frontier of a real pipeline still lacks segments that larger ones have.
constexpr int kFirstSize = 4;
constexpr int kSecondSize = 5;
// The check is on half of the microbatches: there are pipelines with segments that appear only from
// 8 times the stages on, which a check on 6 times did not notice. Below this multiple, solving the
// three smaller problems costs more than it saves.
constexpr int kLeastSize = 14;

using Points = std::vector<FrontierPoint>;

// Extrapolates one point from the first and the second size to `microbatches`. Returns nullopt when
// its time is not a whole number of ticks.
std::optional<FrontierPoint> Extrapolate(const FrontierPoint& first, const FrontierPoint& second,
                                         Seconds tick, int microbatches, int stages) {
  const std::int64_t beyond = microbatches - kFirstSize * stages;
  const std::int64_t growth = (second.ticks - first.ticks) * beyond;
  if (growth % stages != 0) return std::nullopt;
  const double share = static_cast<double>(beyond) / static_cast<double>(stages);
  const Ticks ticks = first.ticks + growth / stages;
  return FrontierPoint{.ticks = ticks,
                       .time = tick * static_cast<double>(ticks),
                       .energy = first.energy + share * (second.energy - first.energy)};
}

std::optional<Points> ExtrapolateAll(const Points& first, const Points& second, Seconds tick,
                                     int microbatches, int stages) {
  if (first.size() != second.size()) return std::nullopt;
  Points points;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto point = Extrapolate(first[i], second[i], tick, microbatches, stages);
    if (!point || (!points.empty() && point->ticks >= points.back().ticks)) return std::nullopt;
    points.push_back(*point);
  }
  return points;
}

bool AreTheSame(const Points& predicted, const Points& solved) {
  constexpr double kRounding = 1e-10;
  if (predicted.size() != solved.size()) return false;
  for (std::size_t i = 0; i < solved.size(); ++i) {
    const Joules difference = predicted[i].energy - solved[i].energy;
    if (predicted[i].ticks != solved[i].ticks) return false;
    if (std::abs(difference.value()) > kRounding * std::abs(solved[i].energy.value())) return false;
  }
  return true;
}

}  // namespace

Result<std::optional<std::vector<FrontierPoint>>> ExtrapolateFrontier(const ProblemOfSize& make,
                                                                      const CostTable& costs,
                                                                      int stages, int microbatches,
                                                                      const SolveOptions& options) {
  using Outcome = std::optional<Points>;
  if (microbatches < kLeastSize * stages) return Outcome();
  const std::vector<int> sizes{kFirstSize * stages, kSecondSize * stages, microbatches / 2};
  const int total = std::accumulate(sizes.begin(), sizes.end(), 0);
  std::vector<Points> solved;
  double done = 0;
  for (const int size : sizes) {
    SolveOptions part{};
    if (options.progress)
      part.progress = [&](double share) { return options.progress((done + share * size) / total); };
    ZEUS_TRY(const Problem problem, make(size));
    ZEUS_TRY(const Frontier frontier, SolveFrontier(problem, costs, part));
    solved.push_back(frontier.points());
    done += size;
  }
  const auto check = ExtrapolateAll(solved[0], solved[1], costs.tick, sizes.back(), stages);
  if (!check || !AreTheSame(*check, solved[2])) return Outcome();
  return ExtrapolateAll(solved[0], solved[1], costs.tick, microbatches, stages);
}

}  // namespace zeus::pipeline
