#include <algorithm>
#include <cstddef>
#include <optional>
#include <queue>

#include "zeus/optimizer/pipeline/clock_runs.h"
#include "zeus/optimizer/pipeline/evaluation.h"

namespace zeus::pipeline {
namespace {

// Visits to computations that this may cost: a fraction of a second.
constexpr std::size_t kMostVisits = 20'000'000;

// Neighbours on a stage that run at one clock, those among them that have one.
using Run = std::vector<int>;

std::vector<Run> RunsOf(const Problem& problem, std::span<const int> choice) {
  std::vector<Run> runs;
  for (const std::vector<int>& order : problem.stage_order) {
    std::optional<Hertz> clock;
    for (const int computation : order) {
      const ComputationKind& kind = problem.KindOf(computation);
      if (AnyClock(kind)) continue;
      const Hertz here = kind.points[At(choice[At(computation)])].clock;
      if (clock != here) runs.emplace_back();
      clock = here;
      runs.back().push_back(computation);
    }
  }
  return runs;
}

// A run at its next lower clock.
struct Step {
  Joules saves{};
  std::size_t run = 0;
  std::vector<int> points{};  // Of the computations of the run.

  friend bool operator<(const Step& a, const Step& b) { return a.saves < b.saves; }
};

std::optional<Step> NextStep(const Problem& problem, const Run& run, std::size_t index,
                             std::span<const int> choice) {
  const ComputationKind& first = problem.KindOf(run.front());
  const Hertz now = first.points[At(choice[At(run.front())])].clock;
  std::vector<Hertz> lower;
  for (const OperatingPoint& point : first.points)
    if (point.clock < now) lower.push_back(point.clock);
  std::ranges::sort(lower, std::greater<>());
  for (const Hertz clock : lower) {
    Step step{.run = index};
    for (const int computation : run) {
      const ComputationKind& kind = problem.KindOf(computation);
      const auto point = std::ranges::find(kind.points, clock, &OperatingPoint::clock);
      if (point == kind.points.end()) break;
      step.points.push_back(static_cast<int>(point - kind.points.begin()));
      step.saves += EffectiveEnergy(problem, kind, kind.points[At(choice[At(computation)])]) -
                    EffectiveEnergy(problem, kind, *point);
    }
    if (step.points.size() == run.size() && step.saves > Joules()) return step;
  }
  return std::nullopt;
}

}  // namespace

void SlowRunsDown(const Problem& problem, Seconds deadline, Seconds latency,
                  std::vector<int>& choice) {
  const std::vector<Run> runs = RunsOf(problem, choice);
  std::priority_queue<Step> steps;
  const auto offer = [&](std::size_t run) {
    if (auto step = NextStep(problem, runs[run], run, choice)) steps.push(*std::move(step));
  };
  for (std::size_t run = 0; run < runs.size(); ++run) offer(run);
  for (std::size_t visits = 0; !steps.empty() && visits < kMostVisits; visits += choice.size()) {
    const Step step = steps.top();
    steps.pop();
    std::vector<int> slower = choice;
    for (std::size_t i = 0; i < step.points.size(); ++i)
      slower[At(runs[step.run][i])] = step.points[i];
    const std::vector<Seconds> waits = WaitsForChanges(problem, slower, latency);
    if (Evaluate(problem, slower, waits).time > deadline) continue;
    choice = std::move(slower);
    offer(step.run);
  }
}

}  // namespace zeus::pipeline
