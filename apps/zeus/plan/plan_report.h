#pragma once

#include <string>

#include "apps/zeus/plan/plan_answer.h"
#include "zeus/report/figure.h"

namespace zeus::cli {

// Returns a report for people: findings, the frontier as a table, figures of it, and of the
// pipeline before and after planning.
report::Report MakePlanReport(const PlanAnswer& answer);

// Draws the pipeline before and after planning in `width` columns; empty if there is no plan.
std::string PlanPicture(const PlanAnswer& answer, int width);

}  // namespace zeus::cli
