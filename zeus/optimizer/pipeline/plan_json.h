#pragma once

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/optimizer/pipeline/profile.h"

// The JSON of plans and profiles in files and on the wire (docs/formats.md).
namespace zeus::pipeline {

Json ToJson(const PipelinePlan& plan);
Result<PipelinePlan> PlanFromJson(const Json& json);

Json ToJson(const PipelineProfile& profile);
Result<PipelineProfile> ProfileFromJson(const Json& json);

}  // namespace zeus::pipeline
