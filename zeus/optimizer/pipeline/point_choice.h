#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/clock_runs.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/deadline_solver.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// The earliest start and the latest end of each computation such that the iteration meets its
// deadline, kept up to date while computations are made slower. One owner. The problem must outlive
// it.
class SlackTable {
 public:
  explicit SlackTable(const Problem& problem);

  void Reset(std::span<const Seconds> durations, Seconds deadline);

  // Returns by how much a computation may become slower if all others stay as they are.
  Seconds Slack(int computation) const {
    const auto at = static_cast<std::size_t>(computation);
    return latest_end_[at] - earliest_start_[at] - durations_[at];
  }
  // Makes a computation slower, by no more than its slack.
  void Lengthen(int computation, Seconds by);

  Seconds makespan() const { return makespan_; }

 private:
  void DelaySuccessors(int computation);
  void HurryPredecessors(int computation);

  const Problem& problem_;
  std::vector<int> rank_;  // Place of each computation in the topological order.
  std::vector<Seconds> durations_{};
  std::vector<Seconds> earliest_start_{};
  std::vector<Seconds> latest_end_{};
  Seconds makespan_{0};
  std::vector<int> queue_{};    // A heap by rank; empty between calls.
  std::vector<bool> queued_{};  // Whether each computation is in the queue.
};

// A point of a kind that is worth choosing: no other point is faster and takes less effective
// energy.
struct EfficientPoint {
  int index = 0;  // Index into ComputationKind::points.
  Seconds time{0};
  Joules effective{};
};
using EfficientPoints = std::vector<EfficientPoint>;  // Fastest first.

// Returns the efficient points of each kind.
std::vector<EfficientPoints> FindEfficientPoints(const Problem& problem);

// Chooses a measured point for each computation. It starts from the relaxed optimum, whose
// durations lie between measured points: rounds each of them down, makes computations slower where
// there is slack left, those first that save most, and then tries random exchanges in which some
// computations become faster so that others can become slower. One owner. The problem must outlive
// it.
class PointChooser {
 public:
  // With a `pace`, iterations last that long whatever is chosen. Without one, a longer iteration
  // costs blocking power.
  PointChooser(const Problem& problem, std::optional<Seconds> pace);

  // Returns the index of each computation's point. They meet the deadline if the rounded durations
  // do, which the caller has to check.
  std::vector<int> Choose(std::span<const Ticks> durations, Seconds tick, Seconds deadline);

 private:
  using Levels = std::vector<int>;  // Index of each computation into its EfficientPoints.

  const EfficientPoints& Points(int computation) const;
  Levels RoundDown(std::span<const Ticks> durations, Seconds tick) const;
  // Makes computations slower while the deadline allows it, starting with those that save most.
  void UseSlack(Levels& levels, Seconds deadline);
  // Makes up to three random computations faster, uses the slack that this gives, and keeps the
  // result if it takes less energy; many times.
  void Exchange(Levels& levels, Seconds deadline);
  // Returns the energy of the iteration, up to a constant.
  Joules Energy(const Levels& levels);
  void Reset(const Levels& levels, Seconds deadline);

  const Problem& problem_;
  const std::optional<Seconds> pace_;
  const std::vector<EfficientPoints> points_;  // Efficient points of each kind.
  SlackTable slack_;
};

// A plan to be found, and the range of the relaxation that guides the search.
struct PlanTask {
  Seconds deadline{0};
  std::optional<Seconds> pace{};  // If given, iterations last that long whatever is planned.
  ClockChangeRules rules{};
  Ticks first_target = 0;  // The first time for which the relaxation is solved.
  // The fastest and the slowest time of the relaxation.
  Ticks fastest = 0;
  Ticks slowest = 0;
};

// Returns the relaxed optimum for a time in ticks, from a frontier or by solving for it alone.
using Relaxation = std::function<Result<DeadlineSolution>(Ticks)>;

// Finds measured points near the relaxed optimum that meet the deadline in measured times. The
// caller sets the plan's bound. Returns kInvalidArgument when the rules allow no plan in time.
Result<PipelinePlan> SearchPlan(const Problem& problem, Seconds tick, const PlanTask& task,
                                const Relaxation& relax);

// Makes the plan that runs each computation at the chosen point, with a delay of `latency` at each
// change of the clock.
PipelinePlan MakePlan(const Problem& problem, std::span<const int> choice, Seconds latency);

}  // namespace zeus::pipeline
