#pragma once

#include <string>
#include <vector>

#include "apps/zeus/plan/plan_flags.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::cli {

// The pipeline that the flags are about: from an instance, or from a profile and a schedule.
// Messages name the file and the fix.
Result<pipeline::Problem> LoadPipeline(const PlanFlags& flags);

// Which of the profile's stages each stage of the pipeline is like: "4" or "0,2,5,7". A number
// spreads the stages over those of the profile, the first and the last kept.
Result<std::vector<int>> ParseStages(const std::string& text, int profiled);

}  // namespace zeus::cli
