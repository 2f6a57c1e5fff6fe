#include "zeus/optimizer/pipeline/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "zeus/optimizer/pipeline/deadline_solver.h"
#include "zeus/optimizer/pipeline/periodic_frontier.h"
#include "zeus/optimizer/pipeline/point_choice.h"

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

// Returns the point of least energy if no other pipeline has to be waited for.
const FrontierPoint& LeastEnergy(const Frontier& frontier) {
  return *std::ranges::min_element(frontier.points(), {}, &FrontierPoint::energy);
}

Joules BlockingEnergy(const Problem& problem, Seconds time) {
  return problem.blocking_power * time * static_cast<double>(problem.stages);
}

}  // namespace

Result<std::unique_ptr<Planner>> Planner::Make(Problem problem, const SolverRules& rules) {
  ZEUS_TRY(CostTable costs, MakeCosts(problem, CostKind::kHull));
  ZEUS_TRY(ChosenFrontier chosen, SolveByChoice(problem, costs, rules));
  return std::unique_ptr<Planner>(
      new Planner(std::move(problem), std::move(costs), std::move(chosen)));
}

Planner::Planner(Problem problem, CostTable costs, ChosenFrontier chosen)
    : problem_(std::move(problem)),
      costs_(std::move(costs)),
      solver_(chosen.solver),
      frontier_(std::move(chosen.frontier)),
      baseline_(Evaluate(problem_, HighestClockChoice(problem_))),
      fastest_(Evaluate(problem_, FastestChoice(problem_))) {}

Result<PipelinePlan> Planner::Plan(Seconds deadline, const ClockChangeRules& rules) const {
  Ticks target = WholeTicks(deadline, costs_.tick);
  if (frontier_) target = std::min(target, LeastEnergy(*frontier_).ticks);
  return PlanTowards(target, deadline, std::nullopt, rules);
}

Result<PipelinePlan> Planner::PlanForPace(Seconds pace, const ClockChangeRules& rules) const {
  Ticks target = WholeTicks(pace, costs_.tick);
  if (frontier_) target = std::min(target, frontier_->slowest().ticks);
  return PlanTowards(target, pace, pace, rules);
}

Result<PipelinePlan> Planner::PlanTowards(Ticks target, Seconds deadline,
                                          std::optional<Seconds> pace,
                                          const ClockChangeRules& rules) const {
  ZEUS_RETURN_IF_ERROR(CheckRules(rules));
  ZEUS_RETURN_IF_ERROR(CheckDeadline(deadline, fastest_.time));
  const bool whole = solver_ == Solver::kWholeFrontier;
  PlanTask task{.deadline = deadline, .pace = pace, .rules = rules};
  task.fastest = whole ? frontier_->fastest().ticks : FastestTicks(problem_, costs_);
  // The fastest time of the relaxation is rounded to ticks and may be above that of the deadline.
  task.first_target = std::max(target, task.fastest);
  // Each further relaxation of a large graph is a solve of its own, so targets slower than the
  // first one are not searched there.
  task.slowest = whole ? frontier_->slowest().ticks : task.first_target;
  // The relaxed optimum is also the plan's bound.
  ZEUS_TRY(const DeadlineSolution first, Relax(task.first_target));
  // The search asks for the same targets under several rules.
  std::map<Ticks, DeadlineSolution> solved{{task.first_target, first}};
  const auto relax = [&](Ticks ticks) -> Result<DeadlineSolution> {
    if (const auto known = solved.find(ticks); known != solved.end()) return known->second;
    ZEUS_TRY(DeadlineSolution solution, Relax(ticks));
    return solved.emplace(ticks, std::move(solution)).first->second;
  };
  ZEUS_TRY(PipelinePlan plan, SearchPlan(problem_, costs_.tick, task, relax));
  plan.bound = first.energy;
  if (pace)
    plan.bound += BlockingEnergy(problem_, *pace) -
                  BlockingEnergy(problem_, static_cast<double>(first.time) * costs_.tick);
  return plan;
}

Result<DeadlineSolution> Planner::Relax(Ticks ticks) const {
  if (solver_ != Solver::kWholeFrontier) return SolveDeadline(problem_, costs_, ticks);
  return DeadlineSolution{ticks, frontier_->EnergyAt(ticks), frontier_->DurationsAt(ticks)};
}

double Saving(const PipelinePlan& plan, const Evaluation& baseline, const Problem& problem) {
  const bool waits = plan.waits_until > plan.time;
  const Seconds idle = waits ? std::max(plan.waits_until - baseline.time, Seconds(0)) : Seconds(0);
  return 1 - plan.energy / (baseline.energy + BlockingEnergy(problem, idle));
}

namespace {

Status CheckScenario(const ReplicaScenario& scenario) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  if (scenario.replicas < 1) return invalid("replicas: a job has at least 1 pipeline");
  if (scenario.stragglers < 0 || scenario.stragglers > scenario.replicas)
    return invalid(fmt::format("stragglers: {} of {} pipelines cannot be slow", scenario.stragglers,
                               scenario.replicas));
  if (!(scenario.slowdown >= 1) || !(scenario.slowdown <= 1000))
    return invalid(fmt::format("slowdown: {} is not between 1 and 1000", scenario.slowdown));
  return Ok();
}

}  // namespace

Result<ReplicaOutcome> PlanReplicas(const Planner& planner, const ReplicaScenario& scenario) {
  ZEUS_RETURN_IF_ERROR(CheckScenario(scenario));
  const Evaluation& baseline = planner.baseline();
  const Problem& problem = planner.problem();
  const auto waiting = [&](Seconds time) {
    return problem.blocking_power * time * static_cast<double>(problem.stages);
  };
  ReplicaOutcome outcome;
  outcome.pace = scenario.stragglers > 0 ? baseline.time * scenario.slowdown : baseline.time;
  ZEUS_TRY(const PipelinePlan for_pace, planner.PlanForPace(outcome.pace));
  ZEUS_TRY(const PipelinePlan alone, planner.Plan(baseline.time));
  const Joules straggler = baseline.energy * scenario.slowdown;
  const auto slow = static_cast<double>(scenario.stragglers);
  const auto others = static_cast<double>(scenario.replicas - scenario.stragglers);
  outcome.baseline_energy =
      slow * straggler + others * (baseline.energy + waiting(outcome.pace - baseline.time));
  outcome.planned_energy = slow * straggler + others * for_pace.energy;
  outcome.intrinsic_energy =
      slow * straggler + others * (alone.energy + waiting(outcome.pace - alone.time));
  return outcome;
}

}  // namespace zeus::pipeline
