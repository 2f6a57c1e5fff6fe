#include "zeus/device/sim/graphics_clocks.h"

#include <algorithm>
#include <cmath>

namespace zeus::sim {
namespace {

// Typical of data-centre GPUs: a quarter of the power above idle does not depend on the clock
// (memory, leakage of powered blocks), and voltage falls linearly with the clock down to 65 %.
constexpr double kStaticShare = 0.25;
constexpr double kLowestVoltage = 0.65;

int StepCount(const GpuModel& model) {
  const Hertz span = model.graphics_clock.max - model.graphics_clock.min;
  // The nudge keeps an exact multiple from being rounded down.
  return static_cast<int>(std::floor(span / model.graphics_clock_step + 1e-9));
}

// Counted down from the highest clock, which is always supported.
Hertz ClockAt(const GpuModel& model, int steps_below_highest) {
  return model.graphics_clock.max - model.graphics_clock_step * steps_below_highest;
}

}  // namespace

std::vector<Hertz> GraphicsClocks(const GpuModel& model) {
  std::vector<Hertz> clocks;
  for (int i = StepCount(model); i >= 0; --i) clocks.push_back(ClockAt(model, i));
  return clocks;
}

Hertz SupportedClockBelow(const GpuModel& model, Hertz clock) {
  const double below = (model.graphics_clock.max - clock) / model.graphics_clock_step;
  const int steps = static_cast<int>(std::ceil(std::max(below, 0.0) - 1e-9));
  return ClockAt(model, std::min(steps, StepCount(model)));
}

double PowerShareAt(const GpuModel& model, Hertz clock) {
  const double relative = clock / model.graphics_clock.max;
  const double voltage = kLowestVoltage + (1.0 - kLowestVoltage) * relative;
  return kStaticShare + (1.0 - kStaticShare) * relative * voltage * voltage;
}

Hertz HighestClockWithin(const GpuModel& model, double share) {
  int low = 0;
  int high = StepCount(model);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (PowerShareAt(model, ClockAt(model, middle)) <= share) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return ClockAt(model, low);
}

}  // namespace zeus::sim
