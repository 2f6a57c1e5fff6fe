#pragma once

#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// One point of the frontier.
struct DeadlineSolution {
  Ticks time = 0;                  // Within the deadline; less only when nothing needs as long.
  Joules energy{};                 // Of the iteration, blocking over `time` included.
  std::vector<Ticks> durations{};  // Of each computation.
};

// The least energy for one deadline, without the rest of the frontier: much faster than
// SolveFrontier() where graphs are large. kInvalidArgument, with the fastest time, when no
// durations meet the deadline.
Result<DeadlineSolution> SolveDeadline(const Problem& problem, const CostTable& costs,
                                       Ticks deadline);

}  // namespace zeus::pipeline
