#include "apps/zeus/plan/plan_answer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "apps/zeus/progress_bar.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/periodic_frontier.h"
#include "zeus/optimizer/pipeline/reference_plan.h"
#include "zeus/optimizer/pipeline/resized_problem.h"

namespace zeus::cli {
namespace {

using pipeline::CostKind;
using pipeline::FrontierPoint;
using pipeline::PipelinePlan;
using pipeline::Planner;

constexpr const char* kChoosing = "choosing clocks";
constexpr const char* kWholeFrontier = "the whole frontier";
constexpr const char* kFromSmaller =
    "the frontier from pipelines of fewer microbatches, checked at half of them,";

constexpr std::array kSlowdowns = {0.0, 0.01, 0.02, 0.05, 0.1, 0.2};

// Tells the bar how far the solver is.
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

// Runs `work` and says how long it took.
template <class Work>
auto Timed(const Clock& clock, Seconds& took, const Work& work) {
  const TimePoint begin = clock.Now();
  auto result = work();
  took = clock.Now() - begin;
  return result;
}

double SavingOf(Joules energy, const PlanAnswer& answer) {
  return 1 - energy / answer.baseline.energy;
}

Result<SlackRow> RowOf(const PlanAnswer& answer, const Planner& planner, double slowdown) {
  SlackRow row{.slowdown = slowdown, .deadline = answer.baseline.time * (1 + slowdown)};
  ZEUS_TRY(row.plan, planner.Plan(row.deadline));
  row.plan->stages.clear();
  row.bound = row.plan->bound;
  row.saving = SavingOf(row.plan->energy, answer);
  return row;
}

Result<std::unique_ptr<Planner>> SolvePlanner(PlanAnswer& answer, const Clock& clock) {
  auto planner = Timed(clock, answer.solve_time, [&] {
    SolveProgress progress;
    return Planner::Make(answer.problem, progress.Options());
  });
  if (!planner.ok()) return planner;
  answer.method = kWholeFrontier;
  answer.frontier = planner.value()->frontier().points();
  return planner;
}

Status AddSlacks(PlanAnswer& answer, const Planner& planner) {
  for (const double slowdown : kSlowdowns) {
    ZEUS_TRY(SlackRow row, RowOf(answer, planner, slowdown));
    answer.slacks.push_back(std::move(row));
  }
  return Ok();
}

Result<PipelinePlan> PlanOf(const PlanAnswer& answer, const Planner& planner,
                            const PlanRequest& request) {
  const Seconds baseline = answer.baseline.time;
  if (request.pace) return planner.PlanForPace(request.pace->Of(baseline), request.rules);
  if (request.without_deadline)
    return planner.Plan(std::max(planner.frontier().slowest().time, answer.baseline.time),
                        request.rules);
  return planner.Plan(request.deadline ? request.deadline->Of(baseline) : baseline, request.rules);
}

Status PlanOnFrontier(PlanAnswer& answer, const PlanRequest& request, const Clock& clock) {
  ZEUS_TRY(const std::unique_ptr<Planner> planner, SolvePlanner(answer, clock));
  const BusyLine busy(kChoosing, clock);
  auto plan = Timed(clock, answer.plan_time, [&] { return PlanOf(answer, *planner, request); });
  if (!plan.ok()) return std::move(plan).error();
  answer.plan = std::move(plan).value();
  ZEUS_RETURN_IF_ERROR(AddSlacks(answer, *planner));
  if (!request.pace || request.replicas < 2) return Ok();
  const Seconds pace = request.pace->Of(answer.baseline.time);
  ZEUS_TRY(answer.replicas, PlanReplicas(*planner, {.replicas = request.replicas,
                                                    .stragglers = 1,
                                                    .slowdown = pace / answer.baseline.time}));
  return Ok();
}

Status PlanAlone(PlanAnswer& answer, const PlanRequest& request, const Clock& clock) {
  const Seconds deadline = request.deadline->Of(answer.baseline.time);
  const BusyLine busy("solving for this deadline", clock);
  auto plan = Timed(clock, answer.solve_time,
                    [&] { return PlanOnce(answer.problem, deadline, request.rules); });
  if (!plan.ok()) return std::move(plan).error();
  answer.plan = std::move(plan).value();
  answer.method = "this deadline alone";
  return Ok();
}

// Of a large pipeline from smaller ones, where its schedule and the check allow it.
Result<std::optional<pipeline::Frontier>> SolveFromSmaller(const PlanAnswer& answer,
                                                           const pipeline::CostTable& costs,
                                                           const pipeline::SolveOptions& options) {
  using Outcome = std::optional<pipeline::Frontier>;
  const pipeline::Problem& problem = answer.problem;
  const auto resizable = pipeline::Resizable(problem);
  if (!resizable) return Outcome();
  ZEUS_TRY(auto points, pipeline::ExtrapolateFrontier(*resizable, costs, problem.stages,
                                                      problem.microbatches, options));
  if (!points) return Outcome();
  return Outcome(pipeline::Frontier({.tick = costs.tick, .points = *std::move(points)}));
}

// The model's durations are whole steps, and so are the points that the reference writes: those on
// a straight line, too. Of extremely many steps the breakpoints will do.
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

// What the frontier itself says, where it makes no plans.
void AddBounds(PlanAnswer& answer, const pipeline::Frontier& frontier) {
  for (const double slowdown : kSlowdowns) {
    SlackRow row{.slowdown = slowdown, .deadline = answer.baseline.time * (1 + slowdown)};
    // True times are not whole ticks: the fastest is meant where it is missed by less than one.
    const pipeline::Ticks ticks = frontier.TicksWithin(row.deadline + frontier.tick());
    if (ticks < frontier.fastest().ticks) continue;
    row.bound = frontier.EnergyAt(ticks);
    row.saving = SavingOf(row.bound, answer);
    answer.slacks.push_back(row);
  }
}

bool IsLarge(const PlanAnswer& answer, const PlanRequest& request) {
  return answer.problem.computations.size() > kLargeGraph && !request.whole_frontier;
}

// Of the reference's model; it knows no clocks, so there is no plan.
Status SolveModel(PlanAnswer& answer, const PlanRequest& request, const Clock& clock) {
  auto frontier = Timed(clock, answer.solve_time, [&]() -> Result<pipeline::Frontier> {
    ZEUS_TRY(const pipeline::CostTable costs, MakeCosts(answer.problem, request.cost));
    SolveProgress progress;
    pipeline::SolveOptions options = progress.Options();
    answer.method = kWholeFrontier;
    if (request.deadline) {
      options.until = request.deadline->Of(answer.baseline.time);
      answer.method = "the frontier down to the deadline";
    } else if (IsLarge(answer, request)) {
      ZEUS_TRY(auto from_smaller, SolveFromSmaller(answer, costs, options));
      answer.method = kFromSmaller;
      if (from_smaller) return *std::move(from_smaller);
      answer.method = kWholeFrontier;
    }
    return SolveFrontier(answer.problem, costs, options);
  });
  if (!frontier.ok()) return std::move(frontier).error();
  answer.frontier = EveryStep(frontier.value());
  AddBounds(answer, frontier.value());
  return Ok();
}

// The frontier of a large pipeline from smaller ones and a plan for the baseline's time alone.
// False where the frontier cannot be had like this.
Result<bool> PlanLarge(PlanAnswer& answer, const PlanRequest& request, const Clock& clock) {
  using Outcome = std::optional<pipeline::Frontier>;
  const auto frontier = Timed(clock, answer.solve_time, [&]() -> Result<Outcome> {
    ZEUS_TRY(const pipeline::CostTable costs, MakeCosts(answer.problem, request.cost));
    SolveProgress progress;
    return SolveFromSmaller(answer, costs, progress.Options());
  });
  if (!frontier.ok()) return frontier.error();
  if (!frontier.value()) return false;
  answer.frontier = frontier.value()->points();
  answer.method = kFromSmaller;
  AddBounds(answer, *frontier.value());
  const BusyLine busy(kChoosing, clock);
  auto plan = Timed(clock, answer.plan_time,
                    [&] { return PlanOnce(answer.problem, answer.baseline.time, request.rules); });
  if (!plan.ok()) return std::move(plan).error();
  answer.plan = std::move(plan).value();
  return true;
}

// With the measured points, in the way that takes least time.
Status SolvePoints(PlanAnswer& answer, const PlanRequest& request, const Clock& clock) {
  if (IsLarge(answer, request) && request.deadline) return PlanAlone(answer, request, clock);
  if (IsLarge(answer, request) && !request.pace && !request.without_deadline) {
    ZEUS_TRY(const bool planned, PlanLarge(answer, request, clock));
    if (planned) return Ok();
  }
  return PlanOnFrontier(answer, request, clock);
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
  // Before the solver works in vain.
  ZEUS_TRY(answer.plan, EvaluateReference(answer.problem, ranks, latency));
  ZEUS_TRY(const std::unique_ptr<Planner> planner, SolvePlanner(answer, clock));
  const BusyLine busy(kChoosing, clock);
  ZEUS_RETURN_IF_ERROR(AddSlacks(answer, *planner));
  const pipeline::Frontier& frontier = planner->frontier();
  // True times are not whole ticks; the frontier's fastest time is rounded up to them.
  const pipeline::Ticks ticks =
      std::max(frontier.TicksWithin(answer.plan->time), frontier.fastest().ticks);
  answer.plan->bound = frontier.EnergyAt(ticks);
  answer.plan_name = "given schedule";
  answer.saving = Saving(*answer.plan, answer.baseline, answer.problem);
  return answer;
}

}  // namespace zeus::cli
