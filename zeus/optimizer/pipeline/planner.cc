#include "zeus/optimizer/pipeline/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/optimizer/pipeline/deadline_solver.h"
#include "zeus/optimizer/pipeline/plan_search.h"

namespace zeus::pipeline {
namespace {

constexpr Seconds kRounding{1e-9};

Status CheckDeadline(Seconds deadline, Seconds fastest) {
  if (std::isfinite(deadline.count()) && deadline >= fastest - kRounding) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("no plan takes {:.6g} s: the fastest iteration takes {:.6g} s",
                           deadline.count(), fastest.count())};
}

Status CheckRules(const ClockChangeRules& rules) {
  if (rules.least_instructions < 1)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a clock cannot change every {} instructions: give at least 1",
                             rules.least_instructions)};
  if (!(rules.latency >= Seconds(0)) || !(rules.latency <= Seconds(60)))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a change of the clock cannot take {} s: give 0 to 60", rules.latency.count())};
  return Ok();
}

// Where an iteration that nobody waits for takes the least energy.
const FrontierPoint& LeastEnergy(const Frontier& frontier) {
  return *std::ranges::min_element(frontier.points(), {}, &FrontierPoint::energy);
}

Joules BlockingEnergy(const Problem& problem, Seconds time) {
  return problem.blocking_power * time * static_cast<double>(problem.stages);
}

}  // namespace

Result<std::unique_ptr<Planner>> Planner::Make(Problem problem, const SolveOptions& options) {
  ZEUS_TRY(CostTable costs, MakeCosts(problem, CostKind::kHull));
  ZEUS_TRY(Frontier frontier, SolveFrontier(problem, costs, options));
  return std::unique_ptr<Planner>(
      new Planner(std::move(problem), std::move(costs), std::move(frontier)));
}

Planner::Planner(Problem problem, CostTable costs, Frontier frontier)
    : problem_(std::move(problem)),
      costs_(std::move(costs)),
      frontier_(std::move(frontier)),
      baseline_(Evaluate(problem_, HighestClockChoice(problem_))),
      fastest_(Evaluate(problem_, FastestChoice(problem_))) {}

Result<PipelinePlan> Planner::Plan(Seconds deadline, const ClockChangeRules& rules) const {
  return PlanTowards(std::min(frontier_.TicksWithin(deadline), LeastEnergy(frontier_).ticks),
                     deadline, std::nullopt, rules);
}

Result<PipelinePlan> Planner::PlanForPace(Seconds pace, const ClockChangeRules& rules) const {
  return PlanTowards(frontier_.TicksWithin(pace), pace, pace, rules);
}

Result<PipelinePlan> Planner::PlanTowards(Ticks target, Seconds deadline,
                                          std::optional<Seconds> pace,
                                          const ClockChangeRules& rules) const {
  ZEUS_RETURN_IF_ERROR(CheckRules(rules));
  ZEUS_RETURN_IF_ERROR(CheckDeadline(deadline, fastest_.time));
  // The relaxation's fastest time is rounded to ticks, the true one is not.
  target = std::max(target, frontier_.fastest().ticks);
  const PlanTask task{.deadline = deadline,
                      .pace = pace,
                      .rules = rules,
                      .first_target = target,
                      .fastest = frontier_.fastest().ticks,
                      .slowest = frontier_.slowest().ticks};
  const auto relax = [this](Ticks ticks) -> Result<DeadlineSolution> {
    return DeadlineSolution{ticks, frontier_.EnergyAt(ticks), frontier_.DurationsAt(ticks)};
  };
  ZEUS_TRY(PipelinePlan plan, SearchPlan(problem_, costs_.tick, task, relax));
  plan.bound = frontier_.EnergyAt(target);
  if (pace)
    plan.bound += BlockingEnergy(problem_, *pace) -
                  BlockingEnergy(problem_, static_cast<double>(target) * costs_.tick);
  return plan;
}

Result<PipelinePlan> PlanOnce(const Problem& problem, Seconds deadline,
                              const ClockChangeRules& rules) {
  ZEUS_RETURN_IF_ERROR(CheckRules(rules));
  ZEUS_RETURN_IF_ERROR(CheckDeadline(deadline, Evaluate(problem, FastestChoice(problem)).time));
  ZEUS_TRY(const CostTable costs, MakeCosts(problem, CostKind::kHull));
  const auto relax = [&](Ticks ticks) { return SolveDeadline(problem, costs, ticks); };
  PlanTask task{.deadline = deadline, .rules = rules};
  task.fastest = FastestTicks(problem, costs);
  task.first_target = std::max(task.fastest, static_cast<Ticks>(std::floor(deadline / costs.tick)));
  Joules bound{};
  const auto remember_bound = [&](Ticks ticks) -> Result<DeadlineSolution> {
    ZEUS_TRY(DeadlineSolution solution, relax(ticks));
    if (bound == Joules{}) bound = solution.energy;
    return solution;
  };
  ZEUS_TRY(PipelinePlan plan, SearchPlan(problem, costs.tick, task, remember_bound));
  plan.bound = bound;
  return plan;
}

double Saving(const PipelinePlan& plan, const Evaluation& baseline, const Problem& problem) {
  const bool waits = plan.waits_until > plan.time;
  const Seconds idle = waits ? std::max(plan.waits_until - baseline.time, Seconds(0)) : Seconds(0);
  return 1 - plan.energy / (baseline.energy + BlockingEnergy(problem, idle));
}

}  // namespace zeus::pipeline
