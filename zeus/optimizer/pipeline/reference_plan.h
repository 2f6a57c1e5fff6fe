#pragma once

#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/reference_schedule.h"

namespace zeus::pipeline {

// What a schedule of the reference implementation takes in true times, by the profile: one list for
// each stage, in the order in which it issues its instructions. A clock of 0 keeps the one before
// it, and each change takes `latency`. The plan has no bound yet. kInvalidArgument names the stage
// and the instruction that does not fit.
Result<PipelinePlan> EvaluateReference(const Problem& problem, const std::vector<RankClocks>& ranks,
                                       Seconds latency);

}  // namespace zeus::pipeline
