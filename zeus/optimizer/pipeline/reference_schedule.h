#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// The instructions of one rank in the order of execution, each with its clock (zero: unchanged).
using RankClocks = std::vector<std::pair<std::string, Hertz>>;

// Parses the schedule file of the reference implementation (Perseus): a Python list of lists of
// ("name", MHz) tuples, then comments. Only these literals are accepted, and nothing is evaluated.
// kInvalidArgument names line and column.
Result<std::vector<RankClocks>> ParseReferenceSchedule(std::string_view text);

// Writes such a file: one list for each stage, then the plan's figures as comments.
std::string ToReferenceSchedule(const PipelinePlan& plan);

// Evaluates a schedule of the reference implementation (Perseus) with the measured times of the
// profile. `ranks` has one list for each stage, in the order in which it issues its instructions. A
// clock of 0 keeps the one before it, and each change takes `latency`. The caller sets the plan's
// bound. kInvalidArgument names the stage and the instruction that does not fit.
Result<PipelinePlan> EvaluateReference(const Problem& problem, const std::vector<RankClocks>& ranks,
                                       Seconds latency);

}  // namespace zeus::pipeline
