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

// The same pipeline with other numbers of microbatches, its kinds numbered alike. nullopt where the
// problem's graph is not the one that a schedule of ours makes. The problem must outlive it.
std::optional<ProblemOfSize> Resizable(const Problem& problem);

// The points of the frontier of a pipeline with many microbatches from those with few: in its
// steady state each further microbatch adds the same to every segment. Not proven: `make` builds
// the problem for any number of microbatches (of the same kinds as `costs`), and the rule must
// predict the frontier of half the size exactly. nullopt where it does not, or where `microbatches`
// is too few to gain by it; solve it whole then. Always the whole frontier: options.until is
// ignored.
Result<std::optional<std::vector<FrontierPoint>>> ExtrapolateFrontier(
    const ProblemOfSize& make, const CostTable& costs, int stages, int microbatches,
    const SolveOptions& options = {});

}  // namespace zeus::pipeline
