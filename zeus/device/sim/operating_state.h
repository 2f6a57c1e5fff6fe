#pragma once

#include <optional>

#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/load.h"
#include "zeus/device/sim/power_history.h"

namespace zeus::sim {

enum class Cooling { kEnough, kSlowedDown };

// Limits on what the GPU may do.
struct Constraints {
  Watts power_limit;
  std::optional<ClockRange> locked_clock;
  Cooling cooling;
};

// The behaviour of the GPU until the next event.
struct OperatingState {
  StepProfile profile;  // Nominal power, without the effect of temperature.
  Hertz graphics_clock;
  Utilization utilization;
  bool power_capped;  // The limit lowers the clock.
  bool at_limit;      // The power is the limit itself.
};

OperatingState Operate(const GpuModel& model, LoadTable& loads, const Constraints& constraints);

}  // namespace zeus::sim
