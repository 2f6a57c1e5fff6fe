#pragma once

#include <string>

#include "apps/zeus/plan/plan_answer.h"
#include "zeus/report/figure.h"

namespace zeus::cli {

// The answer for people: findings, the frontier as a table, and pictures of it and of the pipeline
// before and after.
report::Report MakePlanReport(const PlanAnswer& answer);

// The pipeline before and after in `width` columns; empty where nothing was planned.
std::string PlanPicture(const PlanAnswer& answer, int width);

}  // namespace zeus::cli
