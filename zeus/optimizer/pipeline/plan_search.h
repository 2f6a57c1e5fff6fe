#pragma once

#include <functional>
#include <optional>
#include <span>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/clock_runs.h"
#include "zeus/optimizer/pipeline/deadline_solver.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/planner.h"

namespace zeus::pipeline {

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
