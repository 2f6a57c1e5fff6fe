#pragma once

#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// The optimum for one deadline: a point of the frontier.
struct DeadlineSolution {
  Ticks time = 0;                  // The deadline, or the slowest useful time if that is less.
  Joules energy{};                 // Energy of the iteration, including blocking power over `time`.
  std::vector<Ticks> durations{};  // Duration of each computation.
};

// Finds the least energy for one deadline without the rest of the frontier, which is much faster
// than SolveFrontier() for large graphs. The answer is proven optimal before it is returned.
// Returns kInvalidArgument, naming the fastest time, when no durations meet the deadline.
Result<DeadlineSolution> SolveDeadline(const Problem& problem, const CostTable& costs,
                                       Ticks deadline);

}  // namespace zeus::pipeline
