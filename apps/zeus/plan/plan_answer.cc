#include "apps/zeus/plan/plan_answer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "apps/zeus/progress_bar.h"
#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"

namespace zeus::cli {
namespace {

using pipeline::CostKind;
using pipeline::FrontierPoint;
using pipeline::PipelinePlan;
using pipeline::Planner;

constexpr const char* kChoosing = "choosing clocks";

constexpr std::array kSlowdowns = {0.0, 0.01, 0.02, 0.05, 0.1, 0.2};

// Reports the progress of the solver to a progress bar.
class SolveProgress {
 public:
  pipeline::SolveOptions Options() {
    return {.progress = [this](double share) {
      const auto percent = static_cast<std::int64_t>(share * 100);
      if (percent > told_) bar_.Add(percent - told_);
      told_ = std::max(told_, percent);
      return true;
    }};
  }

 private:
  ProgressBar bar_{"% of the frontier", 100};
  std::int64_t told_ = 0;
};

// Runs `work` and stores its duration in `took`.
template <class Work>
auto Timed(const Clock& clock, Seconds& took, const Work& work) {
  const TimePoint begin = clock.Now();
  auto result = work();
  took = clock.Now() - begin;
  return result;
}

double SavedShare(Joules energy, const PlanAnswer& answer) {
  return 1 - energy / answer.baseline.energy;
}

Result<SlackRow> MakeSlackRow(const PlanAnswer& answer, const Planner& planner, double slowdown) {
  SlackRow row{.slowdown = slowdown, .deadline = answer.baseline.time * (1 + slowdown)};
  ZEUS_TRY(row.plan, planner.Plan(row.deadline));
  row.plan->stages.clear();
  row.bound = row.plan->bound;
  row.saving = SavedShare(row.plan->energy, answer);
  return row;
}

pipeline::Demand ChooseDemand(const PlanRequest& request) {
  if (request.whole_frontier) return pipeline::Demand::kExactFrontier;
  return request.deadline ? pipeline::Demand::kOneDeadline : pipeline::Demand::kFrontier;
}

Result<std::unique_ptr<Planner>> SolvePlanner(PlanAnswer& answer, pipeline::Demand demand,
                                              const Clock& clock) {
  auto planner = Timed(clock, answer.solve_time, [&] {
    SolveProgress progress;
    return Planner::Make(answer.problem, {.demand = demand, .solve = progress.Options()});
  });
  if (!planner.ok()) return planner;
  answer.method = SolverText(planner.value()->solver());
  if (planner.value()->has_frontier()) answer.frontier = planner.value()->frontier().points();
  return planner;
}

// Adds rows with the bounds of the frontier, if no plans are made.
void AddBounds(PlanAnswer& answer, const pipeline::Frontier& frontier) {
  for (const double slowdown : kSlowdowns) {
    SlackRow row{.slowdown = slowdown, .deadline = answer.baseline.time * (1 + slowdown)};
    // True times are not whole ticks: a deadline that misses the fastest time by less than a tick
    // means it.
    const pipeline::Ticks ticks = frontier.TicksWithin(row.deadline + frontier.tick());
    if (ticks < frontier.fastest().ticks) continue;
    row.bound = frontier.EnergyAt(ticks);
    row.saving = SavedShare(row.bound, answer);
    answer.slacks.push_back(row);
  }
}

// Adds plans for some deadlines if a plan is cheap, and bounds if each would need its own solve.
Status AddSlacks(PlanAnswer& answer, const Planner& planner) {
  if (!planner.has_frontier()) return Ok();
  if (planner.solver() != pipeline::Solver::kWholeFrontier) {
    AddBounds(answer, planner.frontier());
    return Ok();
  }
  for (const double slowdown : kSlowdowns) {
    ZEUS_TRY(SlackRow row, MakeSlackRow(answer, planner, slowdown));
    answer.slacks.push_back(std::move(row));
  }
  return Ok();
}

Result<PipelinePlan> MakeAnswerPlan(const PlanAnswer& answer, const Planner& planner,
                                    const PlanRequest& request) {
  const Seconds baseline = answer.baseline.time;
  if (request.pace) return planner.PlanForPace(request.pace->Of(baseline), request.rules);
  if (request.without_deadline)
    return planner.Plan(std::max(planner.frontier().slowest().time, answer.baseline.time),
                        request.rules);
  return planner.Plan(request.deadline ? request.deadline->Of(baseline) : baseline, request.rules);
}

// Solves with the measured points.
Status SolvePoints(PlanAnswer& answer, const PlanRequest& request, const Clock& clock) {
  ZEUS_TRY(const std::unique_ptr<Planner> planner,
           SolvePlanner(answer, ChooseDemand(request), clock));
  const bool alone = !planner->has_frontier();
  const BusyLine busy(alone ? "solving for this deadline" : kChoosing, clock);
  auto plan =
      Timed(clock, answer.plan_time, [&] { return MakeAnswerPlan(answer, *planner, request); });
  if (!plan.ok()) return std::move(plan).error();
  answer.plan = std::move(plan).value();
  if (alone) answer.solve_time += std::exchange(answer.plan_time, Seconds(0));
  ZEUS_RETURN_IF_ERROR(AddSlacks(answer, *planner));
  if (!request.pace || request.replicas < 2) return Ok();
  const Seconds pace = request.pace->Of(answer.baseline.time);
  ZEUS_TRY(answer.replicas, PlanReplicas(*planner, {.replicas = request.replicas,
                                                    .stragglers = 1,
                                                    .slowdown = pace / answer.baseline.time}));
  return Ok();
}

// Durations of the model are whole steps, and the reference writes a point for each, also for those
// on a straight line. If there are too many steps, the breakpoints have to suffice.
std::vector<FrontierPoint> EveryStep(const pipeline::Frontier& frontier) {
  constexpr pipeline::Ticks kMostSteps = 1 << 20;
  const pipeline::Ticks last = frontier.fastest().ticks;
  if (frontier.slowest().ticks - last > kMostSteps) return frontier.points();
  std::vector<FrontierPoint> points;
  for (pipeline::Ticks ticks = frontier.slowest().ticks; ticks >= last; --ticks)
    points.push_back(
        {ticks, static_cast<double>(ticks) * frontier.tick(), frontier.EnergyAt(ticks)});
  return points;
}

// Computes the frontier of the reference's model, which has no clocks, so there is no plan.
Status SolveModel(PlanAnswer& answer, const PlanRequest& request, const Clock& clock) {
  auto chosen = Timed(clock, answer.solve_time, [&]() -> Result<pipeline::ChosenFrontier> {
    ZEUS_TRY(const pipeline::CostTable costs, MakeCosts(answer.problem, request.cost));
    SolveProgress progress;
    pipeline::SolverRules rules{.demand = ChooseDemand(request), .solve = progress.Options()};
    if (request.deadline) {
      rules.demand = pipeline::Demand::kExactFrontier;
      rules.solve.until = request.deadline->Of(answer.baseline.time);
    }
    return SolveByChoice(answer.problem, costs, rules);
  });
  if (!chosen.ok()) return std::move(chosen).error();
  answer.method =
      request.deadline ? "the frontier down to the deadline" : SolverText(chosen.value().solver);
  const pipeline::Frontier& frontier = *chosen.value().frontier;
  answer.frontier = EveryStep(frontier);
  AddBounds(answer, frontier);
  return Ok();
}

PlanAnswer Begin(pipeline::Problem problem) {
  PlanAnswer answer{.problem = std::move(problem)};
  answer.baseline = Evaluate(answer.problem, HighestClockChoice(answer.problem));
  answer.fastest = Evaluate(answer.problem, FastestChoice(answer.problem)).time;
  return answer;
}

}  // namespace

Result<PlanAnswer> AnswerPlan(pipeline::Problem problem, const PlanRequest& request,
                              const Clock& clock) {
  PlanAnswer answer = Begin(std::move(problem));
  answer.cost = request.cost;
  answer.data_parallel = request.replicas;
  answer.rules = request.rules;
  if (request.cost == CostKind::kExponential)
    ZEUS_RETURN_IF_ERROR(SolveModel(answer, request, clock));
  else
    ZEUS_RETURN_IF_ERROR(SolvePoints(answer, request, clock));
  if (answer.plan) answer.saving = Saving(*answer.plan, answer.baseline, answer.problem);
  return answer;
}

Result<PlanAnswer> AnswerReference(pipeline::Problem problem,
                                   const std::vector<pipeline::RankClocks>& ranks, Seconds latency,
                                   const Clock& clock) {
  PlanAnswer answer = Begin(std::move(problem));
  answer.rules.latency = latency;
  // Reports a wrong schedule before the solver does its work.
  ZEUS_TRY(answer.plan, EvaluateReference(answer.problem, ranks, latency));
  ZEUS_TRY(const std::unique_ptr<Planner> planner,
           SolvePlanner(answer, pipeline::Demand::kFrontier, clock));
  const BusyLine busy(kChoosing, clock);
  ZEUS_RETURN_IF_ERROR(AddSlacks(answer, *planner));
  const pipeline::Frontier& frontier = planner->frontier();
  // True times are not whole ticks, and the fastest time of the frontier is rounded up to them.
  const pipeline::Ticks ticks =
      std::max(frontier.TicksWithin(answer.plan->time), frontier.fastest().ticks);
  answer.plan->bound = frontier.EnergyAt(ticks);
  answer.plan_name = "given schedule";
  answer.saving = Saving(*answer.plan, answer.baseline, answer.problem);
  return answer;
}

namespace {

Json Summary(const PipelinePlan& plan, double saving) {
  return {{"deadline_seconds", plan.deadline.count()},
          {"time_seconds", plan.time.count()},
          {"energy_joules", plan.energy.value()},
          {"waits_until_seconds", plan.waits_until.count()},
          {"bound_joules", plan.bound.value()},
          {"gap", plan.gap()},
          {"saving", saving},
          {"clock_changes", plan.clock_changes}};
}

Json ToJson(const SlackRow& row) {
  Json json = {{"slowdown", row.slowdown},
               {"deadline_seconds", row.deadline.count()},
               {"bound_joules", row.bound.value()}};
  if (row.plan) {
    json["time_seconds"] = row.plan->time.count();
    json["energy_joules"] = row.plan->energy.value();
    json["gap"] = row.plan->gap();
  }
  json["saving"] = row.saving;
  return json;
}

Json ToJson(const pipeline::ReplicaOutcome& outcome, int replicas) {
  return {{"replicas", replicas},
          {"stragglers", 1},
          {"pace_seconds", outcome.pace.count()},
          {"baseline_energy_joules", outcome.baseline_energy.value()},
          {"planned_energy_joules", outcome.planned_energy.value()},
          {"intrinsic_energy_joules", outcome.intrinsic_energy.value()},
          {"saving", outcome.saving()},
          {"intrinsic_saving", outcome.intrinsic_saving()}};
}

Json PipelineJson(const pipeline::Problem& problem) {
  return {{"name", problem.name},
          {"stages", problem.stages},
          {"microbatches", problem.microbatches},
          {"computations", problem.computations.size()},
          {"dependencies", problem.graph.edges()},
          {"blocking_power_watts", problem.blocking_power.value()}};
}

}  // namespace

Json ToJson(const PlanAnswer& answer) {
  const bool hull = answer.cost == pipeline::CostKind::kHull;
  Json json = {{"pipeline", PipelineJson(answer.problem)},
               {"cost", hull ? "hull" : "exponential"},
               {"solved", answer.method},
               {"solve_seconds", answer.solve_time.count()},
               {"baseline",
                {{"time_seconds", answer.baseline.time.count()},
                 {"energy_joules", answer.baseline.energy.value()}}},
               {"fastest_seconds", answer.fastest.count()},
               {"frontier", Json::array()},
               {"slowdowns", Json::array()},
               {"plan", nullptr}};
  for (const pipeline::FrontierPoint& point : answer.frontier)
    json["frontier"].push_back(
        {{"time_seconds", point.time.count()}, {"energy_joules", point.energy.value()}});
  for (const SlackRow& row : answer.slacks) json["slowdowns"].push_back(ToJson(row));
  if (answer.plan) json["plan"] = Summary(*answer.plan, answer.saving);
  if (answer.replicas) json["replicas"] = ToJson(*answer.replicas, answer.data_parallel);
  return json;
}

}  // namespace zeus::cli
