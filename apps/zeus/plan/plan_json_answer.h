#pragma once

#include "apps/zeus/plan/plan_answer.h"
#include "zeus/base/json_fwd.h"

namespace zeus::cli {

// What `zeus plan --json` prints: docs/formats.md.
Json ToJson(const PlanAnswer& answer);

}  // namespace zeus::cli
