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

// Slack for rounding: sums of times in another order differ by less, and no clock is that exact.
constexpr Seconds kDeadlineRounding{1e-9};
// How often the relaxation is solved again for another time.
constexpr int kRetries = 12;

// Searches for a plan. If clocks may change freely, measured points are chosen near the relaxed
// optimum (PointChooser). If changes are restricted or take time, whole runs of instructions are
// chosen (ChooseRuns), with several strictnesses of the rules, and the best plan is kept.
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
    return evaluation.time <= task_.deadline + kDeadlineRounding;
  }

  // Rounding to ticks may make a path too long by a few ticks. The relaxation is then solved for as
  // many ticks less.
  Result<PipelinePlan> RunFree() {
    PointChooser chooser(problem_, task_.pace);
    Ticks target = task_.first_target;
    for (int retry = 0; retry < kRetries; ++retry) {
      ZEUS_TRY(const DeadlineSolution relaxed, relax_(target));
      const std::vector<int> choice = chooser.Choose(relaxed.durations, tick_, task_.deadline);
      const Evaluation evaluation = Evaluate(problem_, choice);
      if (InTime(evaluation)) return MakePlan(problem_, choice, Seconds(0));
      if (target == task_.fastest) break;
      const double late = (evaluation.time - task_.deadline) / tick_;
      target = std::max(task_.fastest, target - static_cast<Ticks>(std::ceil(late)) - retry);
    }
    return MakePlan(problem_, FastestChoice(problem_), Seconds(0));
  }

  // Returns rules that are stricter than those of the task. Plans by them keep the task's rules,
  // too, and may be better: many short runs, each rounded for itself, can take more energy than a
  // few long ones.
  std::vector<ClockChangeRules> StricterRules() const {
    std::vector<ClockChangeRules> all;
    for (const int factor : {1, 2, 4, 8})
      all.push_back({.least_instructions = task_.rules.least_instructions * factor,
                     .latency = task_.rules.latency * factor});
    all.push_back({.least_instructions = kMostInstructions});
    return all;
  }

  Result<PipelinePlan> RunWithRules() {
    for (const ClockChangeRules& rules : StricterRules()) ZEUS_RETURN_IF_ERROR(SearchRuns(rules));
    if (task_.rules.least_instructions <= 1) ZEUS_RETURN_IF_ERROR(SearchFreely());
    if (!best_)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("no plan that changes clocks this seldom meets a deadline of "
                               "{:.6g} s: the fastest found takes {:.6g} s",
                               task_.deadline.count(), fastest_found_.count())};
    return MakePlan(problem_, *best_, task_.rules.latency);
  }

  // Searches by bisection for the slowest target of the relaxation whose runs still meet the
  // deadline. The relaxation does not know what runs cost: one clock for many instructions needs
  // more time, and rounding whole runs down leaves some unused.
  Status SearchRuns(const ClockChangeRules& rules) {
    std::vector<int> last =
        ChooseRuns(problem_, std::vector<Seconds>(problem_.computations.size(), Seconds(0)), rules);
    bool found = Consider(last);
    Ticks in_time = task_.fastest;
    Ticks too_late = task_.slowest + 1;
    Ticks target = task_.first_target;
    for (int retry = 0; retry < kRetries && in_time < too_late; ++retry) {
      ZEUS_TRY(const DeadlineSolution relaxed, relax_(target));
      std::vector<int> choice = ChooseRuns(problem_, Allowed(relaxed), rules);
      if (Consider(choice)) {
        last = std::move(choice);
        found = true;
        in_time = target + 1;
      } else {
        too_late = target;
      }
      target = in_time + (too_late - in_time) / 2;
    }
    if (!found) return Ok();
    SlowRunsDown(problem_, task_.deadline, task_.rules.latency, last);
    Consider(std::move(last));
    return Ok();
  }

  // Tries a plan with free changes for a shorter deadline, so that the changes fit into the rest.
  Status SearchFreely() {
    PointChooser chooser(problem_, task_.pace);
    for (const double share : {0.9999, 0.999, 0.995, 0.99, 0.98, 0.95}) {
      const Seconds deadline = task_.deadline * share;
      const auto target = static_cast<Ticks>(std::floor(deadline / tick_));
      if (target < task_.fastest) break;
      ZEUS_TRY(const DeadlineSolution relaxed, relax_(std::min(target, task_.first_target)));
      if (Consider(chooser.Choose(relaxed.durations, tick_, deadline))) break;
    }
    return Ok();
  }

  std::vector<Seconds> Allowed(const DeadlineSolution& relaxed) const {
    std::vector<Seconds> allowed;
    for (const Ticks duration : relaxed.durations)
      allowed.push_back(static_cast<double>(duration) * tick_ + tick_);
    return allowed;
  }

  // Keeps the choice if it is the best that meets the deadline; returns whether it meets it.
  bool Consider(std::vector<int> choice) {
    const Evaluation evaluation =
        Evaluate(problem_, choice, WaitsForChanges(problem_, choice, task_.rules.latency));
    fastest_found_ = std::min(fastest_found_, evaluation.time);
    if (!InTime(evaluation)) return false;
    const Seconds waits = task_.pace.value_or(evaluation.time) - evaluation.time;
    const Joules energy =
        evaluation.energy + problem_.blocking_power * waits * double(problem_.stages);
    if (!best_ || energy < least_) {
      best_ = std::move(choice);
      least_ = energy;
    }
    return true;
  }

  const Problem& problem_;
  const Seconds tick_;
  const PlanTask& task_;
  const Relaxation& relax_;
  std::optional<std::vector<int>> best_{};
  Joules least_{};  // Energy of best_.
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

PipelinePlan MakePlan(const Problem& problem, std::span<const int> choice, Seconds latency) {
  const std::vector<Seconds> waits = WaitsForChanges(problem, choice, latency);
  const Evaluation evaluation = Evaluate(problem, choice, waits);
  PipelinePlan plan{.deadline = evaluation.time,
                    .time = evaluation.time,
                    .energy = evaluation.energy,
                    .waits_until = evaluation.time,
                    .clock_changes = CountClockChanges(problem, choice)};
  for (const std::vector<int>& order : problem.stage_order) {
    std::vector<PlannedInstruction>& stage = plan.stages.emplace_back();
    for (const int computation : order) {
      const ComputationKind& kind = problem.Kind(computation);
      const OperatingPoint& point = kind.points[At(choice[At(computation)])];
      stage.push_back({.instruction = kind.instruction,
                       .microbatch = problem.computations[At(computation)].microbatch,
                       .chunk = problem.computations[At(computation)].chunk,
                       .clock = AnyClock(kind) ? Hertz() : point.clock,
                       .start = evaluation.starts[At(computation)] + waits[At(computation)],
                       .time = point.time,
                       .energy = point.energy});
    }
  }
  return plan;
}

}  // namespace zeus::pipeline
