#pragma once

#include <functional>
#include <optional>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// Builds a problem for any number of microbatches.
using ProblemOfSize = std::function<Result<Problem>(int microbatches)>;

// The same pipeline with other numbers of microbatches, its kinds numbered alike. nullopt where the
// problem's graph is not the one that a schedule of ours makes. The problem must outlive it.
std::optional<ProblemOfSize> Resizable(const Problem& problem);

}  // namespace zeus::pipeline
