// Where changes of the clock are limited, a stage is a sequence of runs. ChooseRuns() is a dynamic
// programme over instructions and clocks: the least energy of the first n instructions if the last
// of them ends a run at clock c that is long enough to end there. Time beyond what the relaxed
// durations allow has a price so high that it is used only where nothing else fits. SlowRunsDown()
// then lowers whole runs to their next clock, those first that save most, while the iteration meets
// its deadline.
#include "zeus/optimizer/pipeline/clock_runs.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <queue>
#include <set>

#include "zeus/optimizer/pipeline/plan.h"

namespace zeus::pipeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Penalty in joules for each second that a computation takes too long: much more than a lower clock
// could save.
constexpr double kPenaltyPerSecond = 1e9;

// Returns the point at that clock; nullopt if the kind was not measured at it.
std::optional<int> PointAt(const Problem& problem, int computation, Hertz clock) {
  const ComputationKind& kind = problem.Kind(computation);
  if (AnyClock(kind)) return 0;
  const auto found = std::ranges::find(kind.points, clock, &OperatingPoint::clock);
  if (found == kind.points.end()) return std::nullopt;
  return static_cast<int>(found - kind.points.begin());
}

const OperatingPoint& ChosenPoint(const Problem& problem, std::span<const int> choice,
                                  int computation) {
  return problem.Kind(computation).points[At(choice[At(computation)])];
}

// Finds the best runs of one stage by dynamic programming over its instructions and clocks.
class StageRuns {
 public:
  StageRuns(const Problem& problem, std::span<const int> order, std::span<const Seconds> durations,
            const ClockChangeRules& rules)
      : problem_(problem), order_(order), durations_(durations), rules_(rules) {
    std::set<Hertz, std::greater<>> clocks;
    for (const int computation : order)
      for (const OperatingPoint& point : problem.Kind(computation).points)
        if (!AnyClock(problem.Kind(computation))) clocks.insert(point.clock);
    clocks_.assign(clocks.begin(), clocks.end());
  }

  void Choose(std::vector<int>& choice) {
    if (clocks_.empty() || order_.empty()) return;
    const std::size_t least =
        std::min(static_cast<std::size_t>(std::max(rules_.least_instructions, 1)), order_.size());
    FillTable(least);
    WriteRuns(choice);
  }

 private:
  double Cost(int computation, Hertz clock, Seconds wait) const {
    const auto index = PointAt(problem_, computation, clock);
    if (!index) return kNever;
    const ComputationKind& kind = problem_.Kind(computation);
    const OperatingPoint& point = kind.points[At(*index)];
    const Seconds late = point.time + wait - durations_[At(computation)];
    return EffectiveEnergy(problem_, kind, point).value() +
           std::max(late.count(), 0.0) * kPenaltyPerSecond;
  }

  // cost_[i][c] is the least cost of the first i instructions if the last of them ends a run at
  // clock c that is long enough to end there, and from_[i][c] is where that run began.
  void FillTable(std::size_t least) {
    const std::size_t n = order_.size();
    cost_.assign(n + 1, std::vector<double>(clocks_.size(), kNever));
    from_.assign(n + 1, std::vector<std::size_t>(clocks_.size(), 0));
    std::vector<double> best(n + 1, kNever);  // The least of cost_[i] over all clocks.
    best[0] = 0;
    for (const Hertz clock : clocks_) sums_.push_back(SumsAt(clock));
    for (std::size_t i = least; i <= n; ++i) {
      for (std::size_t c = 0; c < clocks_.size(); ++c) {
        Extend(i, c);
        Begin(i, c, least, best);
      }
      best[i] = *std::ranges::min_element(cost_[i]);
    }
  }
  // Prefix sums over the instructions at one clock.
  struct Sums {
    std::vector<double> cost{0};
    std::vector<int> missing{0};  // Number of instructions that were not measured at the clock.
  };
  Sums SumsAt(Hertz clock) const {
    Sums sums;
    for (const int computation : order_) {
      const double cost = Cost(computation, clock, {});
      sums.cost.push_back(sums.cost.back() + (cost == kNever ? 0 : cost));
      sums.missing.push_back(sums.missing.back() + (cost == kNever ? 1 : 0));
    }
    return sums;
  }
  double Between(std::size_t begin, std::size_t end, std::size_t c) const {
    if (sums_[c].missing[end] > sums_[c].missing[begin]) return kNever;
    return sums_[c].cost[end] - sums_[c].cost[begin];
  }
  // Considers the run that ended at i - 1 and goes on.
  void Extend(std::size_t i, std::size_t c) {
    const double cost = cost_[i - 1][c] + Between(i - 1, i, c);
    if (cost >= cost_[i][c]) return;
    cost_[i][c] = cost;
    from_[i][c] = from_[i - 1][c];
  }
  // Considers a run of the least length that ends at i.
  void Begin(std::size_t i, std::size_t c, std::size_t least, const std::vector<double>& best) {
    const std::size_t begin = i - least;
    const int first = order_[begin];
    const double run = Between(begin, i, c);
    if (run == kNever) return;
    const double change =
        begin == 0 ? 0
                   : Cost(first, clocks_[c], rules_.latency) - Cost(first, clocks_[c], Seconds(0));
    const double cost = best[begin] + change + run;
    if (cost >= cost_[i][c]) return;
    cost_[i][c] = cost;
    from_[i][c] = begin;
  }

  void WriteRuns(std::vector<int>& choice) const {
    std::size_t end = order_.size();
    while (end > 0) {
      const auto clock =
          static_cast<std::size_t>(std::ranges::min_element(cost_[end]) - cost_[end].begin());
      // If no clock was measured for all instructions, they keep their fastest points.
      if (cost_[end][clock] == kNever) return;
      const std::size_t begin = from_[end][clock];
      for (std::size_t i = begin; i < end; ++i)
        choice[At(order_[i])] = *PointAt(problem_, order_[i], clocks_[clock]);
      end = begin;
    }
  }

  const Problem& problem_;
  const std::span<const int> order_;
  const std::span<const Seconds> durations_;
  const ClockChangeRules& rules_;
  std::vector<Hertz> clocks_{};
  std::vector<Sums> sums_{};
  std::vector<std::vector<double>> cost_{};
  std::vector<std::vector<std::size_t>> from_{};
};

}  // namespace

bool AnyClock(const ComputationKind& kind) { return kind.points.size() == 1; }

std::vector<int> ChooseRuns(const Problem& problem, std::span<const Seconds> durations,
                            const ClockChangeRules& rules) {
  std::vector<int> choice = FastestChoice(problem);
  for (const std::vector<int>& order : problem.stage_order)
    StageRuns(problem, order, durations, rules).Choose(choice);
  return choice;
}

std::vector<Seconds> WaitsForChanges(const Problem& problem, std::span<const int> choice,
                                     Seconds latency) {
  std::vector<Seconds> waits(choice.size(), Seconds(0));
  for (const std::vector<int>& order : problem.stage_order) {
    std::vector<int> clocked;
    for (const int computation : order)
      if (!AnyClock(problem.Kind(computation))) clocked.push_back(computation);
    for (std::size_t i = 0; i < clocked.size(); ++i) {
      const int before = clocked[(i + clocked.size() - 1) % clocked.size()];
      if (ChosenPoint(problem, choice, before).clock !=
          ChosenPoint(problem, choice, clocked[i]).clock)
        waits[At(clocked[i])] = latency;
    }
  }
  return waits;
}

int CountClockChanges(const Problem& problem, std::span<const int> choice) {
  const std::vector<Seconds> waits = WaitsForChanges(problem, choice, Seconds(1));
  return static_cast<int>(std::ranges::count(waits, Seconds(1)));
}

namespace {

// Limit on visits to computations, which take a fraction of a second.
constexpr std::size_t kMostVisits = 20'000'000;

// Consecutive computations of a stage at one clock, without those that do not depend on it.
using Run = std::vector<int>;

std::vector<Run> FindRuns(const Problem& problem, std::span<const int> choice) {
  std::vector<Run> runs;
  for (const std::vector<int>& order : problem.stage_order) {
    std::optional<Hertz> clock;
    for (const int computation : order) {
      const ComputationKind& kind = problem.Kind(computation);
      if (AnyClock(kind)) continue;
      const Hertz here = kind.points[At(choice[At(computation)])].clock;
      if (clock != here) runs.emplace_back();
      clock = here;
      runs.back().push_back(computation);
    }
  }
  return runs;
}

// The option to run a whole run at its next lower clock.
struct Step {
  Joules saves{};
  std::size_t run = 0;
  std::vector<int> points{};  // Points of the run's computations at that clock.

  friend bool operator<(const Step& a, const Step& b) { return a.saves < b.saves; }
};

std::optional<Step> NextStep(const Problem& problem, const Run& run, std::size_t index,
                             std::span<const int> choice) {
  const ComputationKind& first = problem.Kind(run.front());
  const Hertz now = first.points[At(choice[At(run.front())])].clock;
  std::vector<Hertz> lower;
  for (const OperatingPoint& point : first.points)
    if (point.clock < now) lower.push_back(point.clock);
  std::ranges::sort(lower, std::greater<>());
  for (const Hertz clock : lower) {
    Step step{.run = index};
    for (const int computation : run) {
      const ComputationKind& kind = problem.Kind(computation);
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
  const std::vector<Run> runs = FindRuns(problem, choice);
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
