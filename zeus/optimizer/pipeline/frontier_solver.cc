// Follows a FrontierSweep from the slowest iteration to the fastest and records a point wherever
// the price of the next tick changes: between such points the frontier is linear. Durations are not
// stored for each point; the sweep's changes of durations give them for any time in between.
#include "zeus/optimizer/pipeline/frontier_solver.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "zeus/optimizer/pipeline/frontier_sweep.h"

namespace zeus::pipeline {
namespace {

// Converts the cost that the sweep has paid into the energy of a point.
class Accounts {
 public:
  Accounts(const Problem& problem, const CostTable& costs)
      : costs_(costs), blocking_(static_cast<double>(problem.stages) * problem.blocking_power) {
    for (const Computation& computation : problem.computations)
      at_longest_ += costs.costs[static_cast<std::size_t>(computation.kind)].at_longest;
  }

  FrontierPoint PointAt(Ticks ticks, double paid) const {
    const Seconds time = costs_.tick * static_cast<double>(ticks);
    return {.ticks = ticks,
            .time = time,
            .energy = at_longest_ + Joules(paid * costs_.slope_unit) + blocking_ * time};
  }

 private:
  const CostTable& costs_;
  Watts blocking_;
  Joules at_longest_{};
};

// Reports the progress of a solve, about a hundred times in all.
class Progress {
 public:
  Progress(const SolveOptions& options, Ticks from, Ticks to)
      : report_(options.progress), from_(from), to_(to), next_(from) {}

  // Returns false when the solve should end.
  bool At(Ticks time) {
    if (!report_ || time > next_) return true;
    const Ticks way = std::max<Ticks>(from_ - to_, 1);
    next_ = time - std::max<Ticks>(way / 100, 1);
    return report_(static_cast<double>(from_ - time) / static_cast<double>(way));
  }

 private:
  const std::function<bool(double)>& report_;
  Ticks from_;
  Ticks to_;
  Ticks next_;
};

}  // namespace

Result<Frontier> SolveFrontier(const Problem& problem, const CostTable& costs,
                               const SolveOptions& options) {
  FrontierSweep sweep(problem, costs);
  const Accounts accounts(problem, costs);
  Frontier::Parts parts{.tick = costs.tick, .points = {accounts.PointAt(sweep.time(), 0)}};
  for (const Computation& computation : problem.computations)
    parts.slowest_durations.push_back(
        costs.costs[static_cast<std::size_t>(computation.kind)].longest());

  Ticks until = FastestTicks(problem, costs);
  if (options.until) until = std::max(until, WholeTicks(*options.until, costs.tick));
  Progress progress(options, sweep.time(), until);
  for (bool ahead = until < sweep.time(); ahead;) {
    const Slope before = sweep.marginal_cost();
    ahead = sweep.Step(until);
    // The frontier has a vertex where its slope changes.
    const bool turns = sweep.marginal_cost() != before || !ahead;
    if (turns && sweep.time() < parts.points.back().ticks)
      parts.points.push_back(accounts.PointAt(sweep.time(), sweep.cost()));
    if (!progress.At(sweep.time()))
      return Error{ErrorCode::kUnavailable, "the solve of the frontier was cancelled"};
  }
  sweep.BringUpToNow();
  parts.changes = std::move(sweep.changes());
  std::ranges::stable_sort(parts.changes, std::ranges::greater{}, &DurationChange::from);
  return Frontier(std::move(parts));
}

}  // namespace zeus::pipeline
