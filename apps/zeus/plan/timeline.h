#pragma once

#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"

// Pipelines drawn to scale, in whatever medium.
namespace zeus::cli {

// "F3", "B3", "FB3", "R3", "F3.1" for chunk 1; the beginning of any other name.
std::string ShortName(const pipeline::PlannedInstruction& planned);

// "forward of microbatch 3 at 1410 MHz, 0.1034 s"
std::string LongName(const pipeline::PlannedInstruction& planned);

Watts PowerOf(const pipeline::PlannedInstruction& planned);

// What the colours of several pictures range over: from what a stage takes that waits to the most
// that a computation takes.
struct PowerRange {
  Watts low{};
  Watts high{};

  // 0 to 1.
  double ShareOf(Watts power) const;
};
PowerRange RangeOf(const std::vector<const pipeline::PipelinePlan*>& plans, Watts blocking);

}  // namespace zeus::cli
