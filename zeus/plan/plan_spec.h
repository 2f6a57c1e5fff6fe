#pragma once

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// The spec as it is stored. kInvalidArgument with the name of the field (as in JSON) that makes no
// sense.
Result<PlanSpec> Checked(PlanSpec spec);

// The iteration that it describes. kInvalidArgument when the profile lacks something that the
// schedule needs.
Result<pipeline::Problem> ProblemOf(const PlanSpec& spec);

// Ok when both are the same; else kConflict that says which fields differ.
Status CheckSame(const PlanSpec& asked, const PlanSpec& stored);

// Field names as in docs/formats.md. FromJson() refuses unknown fields, so that a misspelt one is
// noticed, and gives absent ones their default.
Json ToJson(const PlanSpec& spec);
Result<PlanSpec> PlanSpecFromJson(const Json& json);

}  // namespace zeus
