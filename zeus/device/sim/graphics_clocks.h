#pragma once

#include <vector>

#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

// The graphics clocks a model supports, ascending.
std::vector<Hertz> GraphicsClocks(const GpuModel& model);

// The highest supported clock at or below `clock`; the lowest of all if there is none.
Hertz SupportedClockBelow(const GpuModel& model, Hertz clock);

// How much of its power above idle a computation keeps when it runs at `clock` instead of the
// highest one: (static + dynamic * (f/fmax) * (V(f)/Vmax)^2) / (static + dynamic), 0 to 1.
double PowerShareAt(const GpuModel& model, Hertz clock);

// The highest supported clock at which that share is at most `share`; the lowest if there is none.
Hertz HighestClockWithin(const GpuModel& model, double share);

}  // namespace zeus::sim
