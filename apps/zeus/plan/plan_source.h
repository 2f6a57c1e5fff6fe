#pragma once

#include <string>
#include <vector>

#include "apps/zeus/plan/plan_flags.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::cli {

// Loads the pipeline from an instance, or from a profile and a schedule. Error messages name the
// file and the fix.
Result<pipeline::Problem> LoadPipeline(const PlanFlags& flags);

// Returns for each stage of the pipeline the stage of the profile that it resembles. `text` is "4"
// or "0,2,5,7"; a number spreads the stages over those of the profile, keeping the first and the
// last.
Result<std::vector<int>> ParseStages(const std::string& text, int profiled);

}  // namespace zeus::cli
