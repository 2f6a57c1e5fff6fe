#pragma once

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// Returns the spec if it is valid; else kInvalidArgument, which names the field (as in JSON).
Result<PlanSpec> Checked(PlanSpec spec);

// Returns the problem of one iteration; kInvalidArgument when the profile lacks something that the
// schedule needs.
Result<pipeline::Problem> ToProblem(const PlanSpec& spec);

// Returns Ok when both specs are the same; else kConflict, which names the fields that differ.
Status CheckSame(const PlanSpec& asked, const PlanSpec& stored);

// Field names are those of docs/formats.md. PlanSpecFromJson() refuses unknown fields, so that
// misspelt ones are noticed, and gives absent ones their default.
Json ToJson(const PlanSpec& spec);
Result<PlanSpec> PlanSpecFromJson(const Json& json);

}  // namespace zeus
