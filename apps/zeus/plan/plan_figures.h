#pragma once

#include "apps/zeus/plan/plan_answer.h"
#include "zeus/report/figure.h"

namespace zeus::cli {

// Draws one iteration to scale, before and after planning, coloured by power. If there are very
// many computations, only the first and the last ones are shown. Needs a plan.
report::Figure PipelineFigure(const PlanAnswer& answer);

// Draws energy over time, with the baseline, the plan and the deadline.
report::Figure FrontierFigure(const PlanAnswer& answer);

}  // namespace zeus::cli
