#include "zeus/optimizer/pipeline/solver_choice.h"

#include <utility>
#include <vector>

#include "zeus/optimizer/pipeline/periodic_frontier.h"

namespace zeus::pipeline {
namespace {

// Returns nullopt when the schedule or the check does not allow it.
Result<std::optional<Frontier>> SolvePeriodic(const Problem& problem, const CostTable& costs,
                                              const SolveOptions& options) {
  using Outcome = std::optional<Frontier>;
  const auto resizable = Resizable(problem);
  if (!resizable) return Outcome();
  ZEUS_TRY(std::optional<std::vector<FrontierPoint>> points,
           ExtrapolateFrontier(*resizable, costs, problem.stages, problem.microbatches, options));
  if (!points) return Outcome();
  return Outcome(Frontier({.tick = costs.tick, .points = *std::move(points)}));
}

}  // namespace

const char* SolverText(Solver solver) {
  switch (solver) {
    case Solver::kWholeFrontier:
      return "the whole frontier";
    case Solver::kPeriodic:
      return "the frontier from pipelines of fewer microbatches (checked at half of them)";
    case Solver::kSingleDeadline:
      return "this deadline alone";
  }
  return "";
}

Result<ChosenFrontier> SolveByChoice(const Problem& problem, const CostTable& costs,
                                     const SolverRules& rules) {
  const bool large = problem.computations.size() > rules.large_graph;
  if (large && rules.demand == Demand::kOneDeadline)
    return ChosenFrontier{.solver = Solver::kSingleDeadline};
  if (large && rules.demand == Demand::kFrontier) {
    ZEUS_TRY(std::optional<Frontier> periodic, SolvePeriodic(problem, costs, rules.solve));
    if (periodic)
      return ChosenFrontier{.solver = Solver::kPeriodic, .frontier = *std::move(periodic)};
  }
  ZEUS_TRY(Frontier whole, SolveFrontier(problem, costs, rules.solve));
  return ChosenFrontier{.solver = Solver::kWholeFrontier, .frontier = std::move(whole)};
}

}  // namespace zeus::pipeline
