#pragma once

#include "apps/zeus/plan/plan_answer.h"
#include "zeus/base/json_fwd.h"

namespace zeus::cli {

// Returns the output of `zeus plan --json` (docs/formats.md).
Json ToJson(const PlanAnswer& answer);

}  // namespace zeus::cli
