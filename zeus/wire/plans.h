#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/plan/plan_service.h"

// The bodies of /v1/plans (docs/server.md). The JSON of a spec is in zeus/plan/plan_spec.h, that of
// a plan in zeus/optimizer/pipeline/plan.h.
namespace zeus::wire {

// Answers. Readers ignore unknown fields.
Json ToJson(const CurrentPlan& plan);
Result<CurrentPlan> CurrentPlanFromJson(const Json& json);

Json ToJson(const PlanFrontier& frontier);
Result<PlanFrontier> PlanFrontierFromJson(const Json& json);

// {"plans": [ids], "next": …}
Result<std::vector<std::string>> PlanIdsFromJson(const Json& json);

struct PaceReport {
  std::optional<Seconds> pace{};
  std::optional<int> rank{};  // The rank that noticed it, for logs only.
};

// A request: {"pace_seconds": 3.4 or null}, optionally with a rank. Unknown fields are refused.
Json PaceToJson(std::optional<Seconds> pace);
Result<PaceReport> PaceFromJson(const Json& json);

}  // namespace zeus::wire
