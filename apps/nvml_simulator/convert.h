#pragma once

#include <cmath>

#include "zeus/base/units.h"

// Conversions to NVML's units: milliwatts, megahertz, whole degrees and percent.
namespace zeus::nvml_simulator {

inline unsigned ToMilliwatts(Watts power) {
  return static_cast<unsigned>(std::lround(std::fmax(power.ToMilli(), 0.0)));
}

inline unsigned ToMegahertz(Hertz clock) {
  return static_cast<unsigned>(std::lround(clock.ToMega()));
}

inline unsigned ToDegrees(Celsius temperature) {
  return static_cast<unsigned>(std::lround(std::fmax(temperature.value(), 0.0)));
}

inline unsigned ToPercent(double share) { return static_cast<unsigned>(std::lround(share * 100)); }

}  // namespace zeus::nvml_simulator
