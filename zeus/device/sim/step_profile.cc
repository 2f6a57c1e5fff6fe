#include "zeus/device/sim/step_profile.h"

#include <algorithm>
#include <cmath>

namespace zeus::sim {

Watts StepProfile::PowerAt(Seconds time) const { return PositionAt(time) < duty ? high : low; }

Joules StepProfile::EnergyUntil(Seconds time) const {
  if (constant()) return low * time;
  // Steps spent computing up to a position that counts whole steps.
  const auto computing = [this](double position) {
    const double whole = std::floor(position);
    return whole * duty + std::min(position - whole, duty);
  };
  const double steps = computing(phase + time / period) - computing(phase);
  return low * time + (high - low) * (steps * period);
}

double StepProfile::PositionAt(Seconds time) const {
  const double position = phase + time / period;
  return position - std::floor(position);
}

StepProfile ConstantProfile(Watts power) { return {.low = power, .high = power}; }

StepProfile TwoLevelProfile(Watts mean, const PowerRange& between, Seconds period, double duty) {
  const bool gapless = duty >= 1.0 || duty <= 0.0 || period <= Seconds(0);
  if (gapless || mean >= between.max) return ConstantProfile(mean);
  const Watts high = std::min(between.min + (mean - between.min) / duty, between.max);
  const Watts low = (mean - high * duty) / (1.0 - duty);
  return {.low = low, .high = high, .period = period, .duty = duty};
}

}  // namespace zeus::sim
