#include "zeus/optimizer/pipeline/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "zeus/optimizer/pipeline/evaluation.h"
#include "zeus/optimizer/pipeline/point_choice.h"

namespace zeus::pipeline {
namespace {

std::size_t At(int index) { return static_cast<std::size_t>(index); }

// Sums of times in another order differ by less; no clock is that exact.
constexpr Seconds kRounding{1e-9};
// How often the relaxation is asked for less time, where what was found takes too long.
constexpr int kRetries = 12;

class PlanSearch {
 public:
  PlanSearch(const Problem& problem, Seconds tick, const PlanTask& task, const Relaxation& relax)
      : problem_(problem), tick_(tick), task_(task), relax_(relax) {}

  Result<PipelinePlan> Run() {
    const bool free = task_.rules.least_instructions <= 1 && task_.rules.latency <= Seconds(0);
    if (free) return RunFree();
    return RunWithRules();
  }

 private:
  bool InTime(const Evaluation& evaluation) const {
    return evaluation.time <= task_.deadline + kRounding;
  }

  // Rounding to ticks may have made paths too long by a few of them: ask for as many less.
  Result<PipelinePlan> RunFree() {
    PointChooser chooser(problem_, task_.pace);
    Ticks target = task_.first_target;
    for (int retry = 0; retry < kRetries; ++retry) {
      ZEUS_TRY(const DeadlineSolution relaxed, relax_(target));
      ClockRuns runs{.choice = chooser.Choose(relaxed.durations, tick_, task_.deadline)};
      const Evaluation evaluation = Evaluate(problem_, runs.choice);
      if (InTime(evaluation)) return MakePlan(problem_, runs);
      if (target == task_.fastest) break;
      const double late = (evaluation.time - task_.deadline) / tick_;
      target = std::max(task_.fastest, target - static_cast<Ticks>(std::ceil(late)) - retry);
    }
    return MakePlan(problem_, {.choice = FastestChoice(problem_)});
  }

  // Runs at one clock need more room than the relaxation knows of: try it for less and less time,
  // and take the plan of least energy that is in time.
  Result<PipelinePlan> RunWithRules() {
    Consider(OneClock());
    Ticks target = task_.first_target;
    for (int retry = 0; retry < kRetries; ++retry) {
      ZEUS_TRY(const DeadlineSolution relaxed, relax_(target));
      std::vector<Seconds> allowed;
      for (const Ticks duration : relaxed.durations)
        allowed.push_back(static_cast<double>(duration) * tick_ + tick_);
      Consider(ChooseRuns(problem_, allowed, task_.rules));
      if (target == task_.fastest) break;
      target -= (target - task_.fastest + 1) / 2;
    }
    if (best_) return *std::move(best_);
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("no plan that changes clocks this seldom meets a deadline of {:.6g} s: "
                    "the fastest found takes {:.6g} s",
                    task_.deadline.count(), fastest_found_.count())};
  }

  // Each stage at the clock at which it is fastest: never a change.
  ClockRuns OneClock() const {
    ClockChangeRules never{.least_instructions = kMostInstructions, .latency = task_.rules.latency};
    return ChooseRuns(problem_, std::vector<Seconds>(problem_.computations.size(), Seconds(0)),
                      never);
  }

  void Consider(const ClockRuns& runs) {
    const Evaluation evaluation = Evaluate(problem_, runs.choice, runs.extra);
    fastest_found_ = std::min(fastest_found_, evaluation.time);
    if (!InTime(evaluation)) return;
    PipelinePlan plan = MakePlan(problem_, runs);
    const auto cost = [&](const PipelinePlan& p) {
      const Seconds waits = task_.pace.value_or(p.time) - p.time;
      return p.energy + problem_.blocking_power * waits * double(problem_.stages);
    };
    if (!best_ || cost(plan) < cost(*best_)) best_ = std::move(plan);
  }

  const Problem& problem_;
  const Seconds tick_;
  const PlanTask& task_;
  const Relaxation& relax_;
  std::optional<PipelinePlan> best_{};
  Seconds fastest_found_ = Seconds::max();
};

}  // namespace

Result<PipelinePlan> SearchPlan(const Problem& problem, Seconds tick, const PlanTask& task,
                                const Relaxation& relax) {
  ZEUS_TRY(PipelinePlan plan, PlanSearch(problem, tick, task, relax).Run());
  plan.deadline = task.deadline;
  if (task.pace) {
    plan.waits_until = std::max(*task.pace, plan.time);
    plan.energy += problem.blocking_power * (plan.waits_until - plan.time) * double(problem.stages);
  }
  return plan;
}

PipelinePlan MakePlan(const Problem& problem, const ClockRuns& runs) {
  const Evaluation evaluation = Evaluate(problem, runs.choice, runs.extra);
  PipelinePlan plan{.deadline = evaluation.time,
                    .time = evaluation.time,
                    .energy = evaluation.energy,
                    .waits_until = evaluation.time,
                    .clock_changes = CountClockChanges(problem, runs.choice)};
  for (const std::vector<int>& order : problem.stage_order) {
    std::vector<PlannedInstruction>& stage = plan.stages.emplace_back();
    for (const int computation : order) {
      const ComputationKind& kind = problem.KindOf(computation);
      const OperatingPoint& point = kind.points[At(runs.choice[At(computation)])];
      const Seconds waits = runs.extra.empty() ? Seconds(0) : runs.extra[At(computation)];
      stage.push_back({.instruction = kind.instruction,
                       .microbatch = problem.computations[At(computation)].microbatch,
                       .chunk = problem.computations[At(computation)].chunk,
                       .clock = AnyClock(kind) ? Hertz() : point.clock,
                       .start = evaluation.starts[At(computation)] + waits,
                       .time = point.time,
                       .energy = point.energy});
    }
  }
  return plan;
}

}  // namespace zeus::pipeline
