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

// For each rank, in the order it executes them: the name of an instruction and its clock (zero:
// leave it).
using RankClocks = std::vector<std::pair<std::string, Hertz>>;

// The reference implementation's schedule file: a Python list of lists of ("name", MHz) tuples,
// then comments. Parsed as the few literals that it may hold; nothing of it is ever evaluated.
// kInvalidArgument names line and column.
Result<std::vector<RankClocks>> ParseReferenceSchedule(std::string_view text);

// One list for each stage, with the plan's figures as comments.
std::string ToReferenceSchedule(const PipelinePlan& plan);

// What a schedule of the reference implementation takes in true times, by the profile: one list for
// each stage, in the order in which it issues its instructions. A clock of 0 keeps the one before
// it, and each change takes `latency`. The plan has no bound yet. kInvalidArgument names the stage
// and the instruction that does not fit.
Result<PipelinePlan> EvaluateReference(const Problem& problem, const std::vector<RankClocks>& ranks,
                                       Seconds latency);

}  // namespace zeus::pipeline
