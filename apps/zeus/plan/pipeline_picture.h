#pragma once

#include <string>

#include "apps/zeus/plan/timeline.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"

namespace zeus::cli {

// An iteration for terminals: a row for each stage, time to the right, computations the darker the
// more power they take, waiting blank.
struct PictureFrame {
  int width = 110;   // Columns.
  Seconds until{0};  // What the right edge stands for.
  PowerRange powers{};
};
std::string PipelinePicture(const pipeline::PipelinePlan& plan, const PictureFrame& frame);

// The scale of time below pictures, and what the shades mean.
std::string PictureLegend(const PictureFrame& frame);

}  // namespace zeus::cli
