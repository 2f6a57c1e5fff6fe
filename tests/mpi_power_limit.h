#pragma once

#include "zeus/base/result.h"
#include "zeus/optimizer/collective.h"

namespace zeus {

// Each rank optimises the power limit of a simulated GPU of its own, the last of them a slower one.
// Prints what was decided and on what.
Status OptimizePowerLimit(Collective& ranks);

// Each rank trains on one GPU of this machine, the one of its number, until somebody ends it. The
// last one is killed while limits are low.
Status TrainUntilOneIsKilled(Collective& ranks);

// The same decision without ranks: every GPU is profiled alone, and what was measured is added up.
Status OptimizeSummedProfiles(int ranks);

}  // namespace zeus
