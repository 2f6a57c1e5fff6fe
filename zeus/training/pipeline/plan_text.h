#pragma once

#include <string>

#include "zeus/base/result.h"
#include "zeus/plan/plan_service.h"

namespace zeus {

// How rank 0 tells the other ranks a plan.
std::string ToText(const CurrentPlan& plan);
Result<CurrentPlan> PlanFromText(const std::string& text);

}  // namespace zeus
