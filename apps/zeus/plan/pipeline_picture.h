#pragma once

#include <string>

#include "apps/zeus/plan/timeline.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"

namespace zeus::cli {

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

}  // namespace zeus::cli
