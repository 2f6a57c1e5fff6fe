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
  // Stop as soon as the frontier reaches this time; nullopt: down to the fastest iteration.
  std::optional<Seconds> until{};
  // Called now and then with the share of the way that is done, 0 to 1. Returning false ends the
  // solve with kUnavailable.
  std::function<bool(double)> progress{};
};

// The exact time-energy frontier: docs/pipeline.md. One thread; deterministic.
Result<Frontier> SolveFrontier(const Problem& problem, const CostTable& costs,
                               const SolveOptions& options = {});

}  // namespace zeus::pipeline
