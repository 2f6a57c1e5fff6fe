#include "zeus/optimizer/pipeline/resized_problem.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zeus::pipeline {
namespace {

// Gives the computations of `resized` the kinds of `problem`.
void TakeKinds(const Problem& problem, Problem& resized) {
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
  TakeKinds(problem, resized);
  return resized;
}

// For each computation of `a` the one at the same place of the same stage of `b`; empty where they
// do not do the same in the same order.
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

}  // namespace zeus::pipeline
