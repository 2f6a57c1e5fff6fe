#pragma once

#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

namespace zeus::sim {

// The power of a repeated training step: it computes at `high` for the share `duty` of a period,
// then waits for input at `low`. A plain draw is the case high == low. In closed form, so that a
// million steps cost as much as one. `phase` is the position inside a step (0 to 1) at time zero.
struct StepProfile {
  Watts low;
  Watts high;
  Seconds period{1.0};
  double duty = 1.0;
  double phase = 0.0;

  bool constant() const { return low == high; }
  Watts mean() const { return low + (high - low) * duty; }

  Watts PowerAt(Seconds time) const;
  Joules EnergyUntil(Seconds time) const;  // From time zero on.
  double PositionAt(Seconds time) const;   // Inside a step, 0 to 1.
};

// A profile that draws `power` all the time.
StepProfile ConstantProfile(Watts power);

// A profile with the given mean whose compute level stays at or below between.max and whose gap
// draws no less than between.min, where the mean must lie too.
StepProfile TwoLevelProfile(Watts mean, const PowerRange& between, Seconds period, double duty);

}  // namespace zeus::sim
