#pragma once

#include "apps/zeus/plan/plan_answer.h"
#include "zeus/report/figure.h"

namespace zeus::cli {

// One iteration drawn to scale, before and after, coloured by power. Of very many computations the
// first and the last ones are shown. Needs a plan.
report::Figure PipelineFigure(const PlanAnswer& answer);

// Energy over time, with the baseline, the plan and the deadline.
report::Figure FrontierFigure(const PlanAnswer& answer);

}  // namespace zeus::cli
