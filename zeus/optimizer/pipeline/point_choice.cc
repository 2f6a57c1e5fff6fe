// SearchPlan() starts from the relaxed optimum, in which a computation may last any time. Rounding
// every duration down to a measured point keeps the deadline and wastes some slack. A greedy pass
// gives the slack to the computations that save most per second of it. Then random exchanges make
// one to three computations faster and pass the slack that this frees to others, as long as energy
// falls. Since measured times are not those of the hull, the relaxation is solved again for
// slightly other times until the plan just meets the deadline.
#include "zeus/optimizer/pipeline/point_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <queue>
#include <tuple>
#include <utility>

#include "zeus/base/random.h"
#include "zeus/optimizer/pipeline/plan.h"

namespace zeus::pipeline {

SlackTable::SlackTable(const Problem& problem)
    : problem_(problem), rank_(problem.computations.size()), queued_(problem.computations.size()) {
  const auto order = problem.graph.topological_order();
  for (std::size_t i = 0; i < order.size(); ++i) rank_[At(order[i])] = static_cast<int>(i);
}

void SlackTable::Reset(std::span<const Seconds> durations, Seconds deadline) {
  durations_.assign(durations.begin(), durations.end());
  earliest_start_.assign(durations.size(), Seconds(0));
  latest_end_.assign(durations.size(), deadline);
  makespan_ = Seconds(0);
  const auto order = problem_.graph.topological_order();
  for (const int computation : order) {
    const Seconds end = earliest_start_[At(computation)] + durations_[At(computation)];
    makespan_ = std::max(makespan_, end);
    for (const int next : problem_.graph.Successors(computation))
      earliest_start_[At(next)] = std::max(earliest_start_[At(next)], end);
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    const Seconds start = latest_end_[At(order[i])] - durations_[At(order[i])];
    for (const int before : problem_.graph.Predecessors(order[i]))
      latest_end_[At(before)] = std::min(latest_end_[At(before)], start);
  }
}

void SlackTable::Lengthen(int computation, Seconds by) {
  durations_[At(computation)] += by;
  DelaySuccessors(computation);
  HurryPredecessors(computation);
}

void SlackTable::DelaySuccessors(int computation) {
  const auto later = [this](int a, int b) { return rank_[At(a)] > rank_[At(b)]; };
  queue_.push_back(computation);
  while (!queue_.empty()) {
    std::ranges::pop_heap(queue_, later);
    const int at = queue_.back();
    queue_.pop_back();
    queued_[At(at)] = false;
    const Seconds end = earliest_start_[At(at)] + durations_[At(at)];
    makespan_ = std::max(makespan_, end);
    for (const int next : problem_.graph.Successors(at)) {
      if (earliest_start_[At(next)] >= end) continue;
      earliest_start_[At(next)] = end;
      if (queued_[At(next)]) continue;
      queued_[At(next)] = true;
      queue_.push_back(next);
      std::ranges::push_heap(queue_, later);
    }
  }
}

void SlackTable::HurryPredecessors(int computation) {
  const auto earlier = [this](int a, int b) { return rank_[At(a)] < rank_[At(b)]; };
  queue_.push_back(computation);
  while (!queue_.empty()) {
    std::ranges::pop_heap(queue_, earlier);
    const int at = queue_.back();
    queue_.pop_back();
    queued_[At(at)] = false;
    const Seconds start = latest_end_[At(at)] - durations_[At(at)];
    for (const int before : problem_.graph.Predecessors(at)) {
      if (latest_end_[At(before)] <= start) continue;
      latest_end_[At(before)] = start;
      if (queued_[At(before)]) continue;
      queued_[At(before)] = true;
      queue_.push_back(before);
      std::ranges::push_heap(queue_, earlier);
    }
  }
}

namespace {

// Limit on visits to computations by exchanges, which take a fraction of a second.
constexpr std::size_t kExchangeVisits = 3'000'000;
constexpr std::uint64_t kExchangeSteps = 2;  // Greatest number of points by which one gets faster.
constexpr std::uint64_t kMostExchanged = 3;  // Greatest number of computations that get faster.

}  // namespace

std::vector<EfficientPoints> FindEfficientPoints(const Problem& problem) {
  std::vector<EfficientPoints> all;
  for (const ComputationKind& kind : problem.kinds) {
    EfficientPoints points;
    for (std::size_t i = 0; i < kind.points.size(); ++i)
      points.push_back({static_cast<int>(i), kind.points[i].time,
                        EffectiveEnergy(problem, kind, kind.points[i])});
    std::ranges::sort(points, {}, [](const EfficientPoint& point) {
      return std::tuple(point.time, point.effective);
    });
    EfficientPoints efficient;
    for (const EfficientPoint& point : points)
      if (efficient.empty() || point.effective < efficient.back().effective)
        efficient.push_back(point);
    all.push_back(std::move(efficient));
  }
  return all;
}

PointChooser::PointChooser(const Problem& problem, std::optional<Seconds> pace)
    : problem_(problem), pace_(pace), points_(FindEfficientPoints(problem)), slack_(problem) {}

const EfficientPoints& PointChooser::Points(int computation) const {
  return points_[At(problem_.computations[At(computation)].kind)];
}

PointChooser::Levels PointChooser::RoundDown(std::span<const Ticks> durations, Seconds tick) const {
  Levels levels;
  for (std::size_t i = 0; i < durations.size(); ++i) {
    const EfficientPoints& points = Points(static_cast<int>(i));
    // The relaxation was solved with times in whole ticks, so they are compared in ticks.
    const auto slower = std::ranges::find_if(points, [&](const EfficientPoint& point) {
      return std::llround(point.time / tick) > durations[i];
    });
    levels.push_back(std::max(static_cast<int>(slower - points.begin()) - 1, 0));
  }
  return levels;
}

void PointChooser::Reset(const Levels& levels, Seconds deadline) {
  std::vector<Seconds> durations;
  durations.reserve(levels.size());
  for (std::size_t i = 0; i < levels.size(); ++i)
    durations.push_back(Points(static_cast<int>(i))[At(levels[i])].time);
  slack_.Reset(durations, deadline);
}

Joules PointChooser::Energy(const Levels& levels) {
  Joules energy{};
  for (std::size_t i = 0; i < levels.size(); ++i)
    energy += Points(static_cast<int>(i))[At(levels[i])].effective;
  if (pace_) return energy;
  return energy + problem_.blocking_power * slack_.makespan() * double(problem_.stages);
}

void PointChooser::UseSlack(Levels& levels, Seconds deadline) {
  Reset(levels, deadline);
  std::priority_queue<std::pair<Joules, int>> moves;
  const auto offer = [&](int computation) {
    const EfficientPoints& points = Points(computation);
    const std::size_t level = At(levels[At(computation)]);
    if (level + 1 == points.size()) return;
    if (points[level + 1].time - points[level].time > slack_.Slack(computation)) return;
    moves.emplace(points[level].effective - points[level + 1].effective, computation);
  };
  const int computations = static_cast<int>(levels.size());
  for (int i = 0; i < computations; ++i) offer(i);
  while (!moves.empty()) {
    const int computation = moves.top().second;
    moves.pop();
    const EfficientPoints& points = Points(computation);
    int& level = levels[At(computation)];
    const Seconds longer = points[At(level + 1)].time - points[At(level)].time;
    if (longer > slack_.Slack(computation)) continue;
    ++level;
    slack_.Lengthen(computation, longer);
    offer(computation);
  }
}

void PointChooser::Exchange(Levels& levels, Seconds deadline) {
  Joules best = Energy(levels);
  Random random(1);
  const std::size_t tries = kExchangeVisits / levels.size();
  const std::size_t most_failures = 8 * levels.size();
  std::size_t failures = 0;  // Since the last exchange that saved energy.
  for (std::size_t tried = 0; tried < tries && failures < most_failures; ++tried, ++failures) {
    Levels changed = levels;
    for (std::uint64_t n = random.Below(kMostExchanged) + 1; n > 0; --n) {
      int& level = changed[random.Below(changed.size())];
      level = std::max(level - 1 - static_cast<int>(random.Below(kExchangeSteps)), 0);
    }
    UseSlack(changed, deadline);
    const Joules energy = Energy(changed);
    if (energy >= best) continue;
    best = energy;
    levels = std::move(changed);
    failures = 0;
  }
}

std::vector<int> PointChooser::Choose(std::span<const Ticks> durations, Seconds tick,
                                      Seconds deadline) {
  const Levels rounded = RoundDown(durations, tick);
  Reset(rounded, deadline);
  // A shorter iteration saves blocking power, which may be more than slower computations save: try
  // both the shortest time and the whole deadline.
  const Seconds shortest = std::min(slack_.makespan(), deadline);
  Levels best{};
  Joules least{};
  Seconds limit{};
  for (const Seconds within : {shortest, deadline}) {
    Levels levels = rounded;
    UseSlack(levels, within);
    const Joules energy = Energy(levels);
    if (!best.empty() && energy >= least) continue;
    best = std::move(levels);
    least = energy;
    limit = within;
  }
  UseSlack(best, limit);
  Exchange(best, limit);
  std::vector<int> choice;
  for (std::size_t i = 0; i < best.size(); ++i)
    choice.push_back(Points(static_cast<int>(i))[At(best[i])].index);
  return choice;
}

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
