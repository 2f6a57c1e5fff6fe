#pragma once

#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/plan.h"

// Names and colours shared by all drawings of pipelines.
namespace zeus::cli {

// Returns "F3", "B3", "FB3", "R3", "F3.1" for chunk 1, or the beginning of any other name.
std::string ShortName(const pipeline::PlannedInstruction& planned);

// Returns "forward of microbatch 3 at 1410 MHz, 0.1034 s".
std::string LongName(const pipeline::PlannedInstruction& planned);

Watts PowerOf(const pipeline::PlannedInstruction& planned);

// The range of powers that the colours of several pictures share: from a waiting stage to the
// computation with the most power.
struct PowerRange {
  Watts low{};
  Watts high{};

  // Returns the position in the range, from 0 to 1.
  double ShareOf(Watts power) const;
};
PowerRange RangeOf(const std::vector<const pipeline::PipelinePlan*>& plans, Watts blocking);

}  // namespace zeus::cli
