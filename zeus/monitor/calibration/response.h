#pragma once

#include <algorithm>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::calibration {

// Busy and idle must differ by this much for their difference to say something.
inline constexpr Watts kLeastContrast{10};

// How a sensor answers a load that is switched on and off. A power reading that appears at t is the
// mean power from t - delay - window to t - delay. So is, for a counter, the energy that was added
// divided by the update period; its window is less than the period if it does not count all time.
struct Response {
  Estimate period;
  Estimate window;
  Estimate delay;
  Watts step;   // Power that the load added, as the sensor shows it.
  Watts noise;  // Root mean square of what the fit leaves.
  int updates;  // Number of updates that were seen.

  // Part of the time that the sensor observes.
  double coverage() const { return std::min(1.0, window.value / period.value); }
};

// Least squares of everything that the sensor showed against what a sensor with a given window and
// delay would have shown. A few readings that contradict the rest wholly (the load missed a
// command) are left out.
//
// kUnavailable with what to do when the recording does not tell: too few updates, too little
// contrast between busy and idle, or a sensor that did not follow the load.
Result<Response> FitPowerResponse(const SensorTrace& watts, const LoadPattern& load);
Result<Response> FitCounterResponse(const SensorTrace& joules, const LoadPattern& load);

}  // namespace zeus::calibration
