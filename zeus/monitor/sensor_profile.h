#pragma once

#include <string>

#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

namespace zeus {

// How a device's sensor turns power into what a program can read, and how wrong it may be.
// reported = gain * true + offset.
struct SensorProfile {
  Seconds counter_period{0.1};  // How often the energy counter shows a new value.
  Seconds power_period{0.1};    // How often the power reading changes …
  Seconds power_window{0.1};    // … and over how much time before the change it averages.

  // How long after the end of what it describes a new value appears.
  Seconds counter_delay{0};
  Seconds power_delay{0};

  double gain = 1.0;
  double gain_sigma = 0.0;  // Standard deviation of the gain, relative to the energy.
  Watts offset{0};
  Watts offset_sigma{0};

  // "prior" from the table of published measurements, "calibrated" from `zeus calibrate`, …
  std::string origin = "prior";
};

// The sensor of a GPU that was not calibrated, by architecture, which the model's name reveals:
// Yang et al., "Accurate and Convenient Energy Measurements for GPUs", SC'24. A model that the
// table lacks gets the least observant sensor and the widest error in it.
SensorProfile PriorProfile(const GpuIdentity& gpu);

// RAPL: a new value every millisecond, a model or a measurement depending on the part.
SensorProfile PriorCpuProfile();
// A board rail read through I2C.
SensorProfile PriorRailProfile();

}  // namespace zeus
