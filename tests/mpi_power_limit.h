#pragma once

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus {

// Each rank optimises the power limit of a simulated GPU of its own; that of the last rank is
// slower. Prints the decision and the profile behind it.
Status OptimizePowerLimit(Collective& ranks);

// Each rank trains on the GPU of this machine that has its number, until the program is terminated.
// The last rank is killed while limits are low.
Status TrainUntilOneIsKilled(Collective& ranks);

// Takes the same decision without ranks: every GPU is profiled alone, and the profiles are summed.
Status OptimizeSummedProfiles(int ranks);

}  // namespace zeus
