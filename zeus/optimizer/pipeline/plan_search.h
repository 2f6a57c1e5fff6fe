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

// What is to be planned.
struct PlanTask {
  Seconds deadline{0};
  std::optional<Seconds> pace{};  // Iterations last that long whatever is planned.
  ClockChangeRules rules{};
  Ticks first_target = 0;  // For which the relaxation is asked first.
  // The ends of the relaxation.
  Ticks fastest = 0;
  Ticks slowest = 0;
};

// The relaxed optimum for a time, in ticks: from a frontier or on its own.
using Relaxation = std::function<Result<DeadlineSolution>(Ticks)>;

// Finds measured points near the relaxed optimum that meet the deadline in true times. The rest of
// the plan (its bound) is up to the caller. kInvalidArgument where the rules allow no plan in time.
Result<PipelinePlan> SearchPlan(const Problem& problem, Seconds tick, const PlanTask& task,
                                const Relaxation& relax);

// The plan that runs each computation at the chosen point, with a wait at each change of the clock.
PipelinePlan MakePlan(const Problem& problem, std::span<const int> choice, Seconds latency);

}  // namespace zeus::pipeline
