#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/plan/plan_service.h"

// Bodies of /v1/plans (docs/server.md). A spec is that of zeus/plan/plan_spec.h, a plan that of
// zeus/optimizer/pipeline/plan.h.
namespace zeus::wire {

// Answers: readers ignore what they do not know.
Json ToJson(const CurrentPlan& plan);
Result<CurrentPlan> CurrentPlanFromJson(const Json& json);

Json ToJson(const PlanFrontier& frontier);
Result<PlanFrontier> PlanFrontierFromJson(const Json& json);

// {"plans": [ids], "next": …}
Result<std::vector<std::string>> PlanIdsFromJson(const Json& json);

struct PaceReport {
  std::optional<Seconds> pace{};
  std::optional<int> rank{};  // Who noticed, which is for people alone.
};

// A request: {"pace_seconds": 3.4 or null}, perhaps with a rank. Refuses what it does not know.
Json PaceToJson(std::optional<Seconds> pace);
Result<PaceReport> PaceFromJson(const Json& json);

}  // namespace zeus::wire
