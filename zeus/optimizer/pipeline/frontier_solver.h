#pragma once

#include <functional>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

struct SolveOptions {
  // The solve stops when the frontier reaches this time; nullopt: at the fastest iteration.
  std::optional<Seconds> until{};
  // Called about a hundred times with the finished share, 0 to 1. If it returns false, the solve
  // ends with kUnavailable.
  std::function<bool(double)> progress{};
};

// Computes the exact time-energy frontier (see docs/pipeline.md and FrontierSweep). Deterministic;
// uses one thread.
Result<Frontier> SolveFrontier(const Problem& problem, const CostTable& costs,
                               const SolveOptions& options = {});

}  // namespace zeus::pipeline
