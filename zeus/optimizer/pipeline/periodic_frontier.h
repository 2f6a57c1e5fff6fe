#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/frontier.h"
#include "zeus/optimizer/pipeline/frontier_solver.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// Builds a problem for any number of microbatches.
using ProblemOfSize = std::function<Result<Problem>(int microbatches)>;

// Returns a function that builds the same pipeline with other numbers of microbatches and the same
// numbering of kinds; nullopt when the problem's graph is not that of a 1F1B or GPipe schedule. The
// problem must outlive the function.
std::optional<ProblemOfSize> Resizable(const Problem& problem);

// Extrapolates the frontier of a pipeline with many microbatches from those with few. A pipeline
// has a steady state, in which each further microbatch adds the same time and energy to every point
// of the frontier: so the points for 4 and 5 times as many microbatches as stages give those for
// any larger number, on a line. That is an observation, not a theorem, so it is checked: the rule
// must predict the frontier for half of the microbatches exactly as it is solved. `make` builds the
// problem for any number of microbatches, with the same kinds as `costs`. Returns nullopt when the
// check fails, or when `microbatches` is so small that nothing is gained; the caller then solves
// the whole frontier. options.until is ignored.
Result<std::optional<std::vector<FrontierPoint>>> ExtrapolateFrontier(
    const ProblemOfSize& make, const CostTable& costs, int stages, int microbatches,
    const SolveOptions& options = {});

}  // namespace zeus::pipeline
