#pragma once

#include <string>
#include <vector>

#include "apps/zeus/plan/plan_answer.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/report/figure.h"

namespace zeus::cli {

// Names and colours shared by all drawings of pipelines.

// Returns "F3", "B3", "FB3", "R3", "F3.1" for chunk 1, or the beginning of any other name.
std::string ShortName(const pipeline::PlannedInstruction& planned);

// Returns "forward of microbatch 3 at 1410 MHz, 0.1034 s".
std::string LongName(const pipeline::PlannedInstruction& planned);

Watts MeanPower(const pipeline::PlannedInstruction& planned);

// The range of powers that the colours of several pictures share: from a waiting stage to the
// computation with the most power.
struct PowerRange {
  Watts low{};
  Watts high{};

  // Returns the position in the range, from 0 to 1.
  double Position(Watts power) const;
};
PowerRange FindPowerRange(const std::vector<const pipeline::PipelinePlan*>& plans, Watts blocking);

// Draws an iteration for a terminal: a row for each stage, time to the right, computations darker
// the more power they draw, waiting blank.
struct PictureFrame {
  int width = 110;   // In columns.
  Seconds until{0};  // The time at the right edge.
  PowerRange powers{};
};
std::string PipelinePicture(const pipeline::PipelinePlan& plan, const PictureFrame& frame);

// Returns the time axis below pictures, and the meaning of the shades.
std::string PictureLegend(const PictureFrame& frame);

// Draws one iteration to scale, before and after planning, coloured by power. If there are very
// many computations, only the first and the last ones are shown. Needs a plan.
report::Figure PipelineFigure(const PlanAnswer& answer);

// Draws energy over time, with the baseline, the plan and the deadline.
report::Figure FrontierFigure(const PlanAnswer& answer);

// Returns a report for people: findings, the frontier as a table, figures of it, and of the
// pipeline before and after planning.
report::Report MakePlanReport(const PlanAnswer& answer);

// Draws the pipeline before and after planning in `width` columns; empty if there is no plan.
std::string PlanPicture(const PlanAnswer& answer, int width);

}  // namespace zeus::cli
