#pragma once

#include <optional>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::calibration {

// A reading that appears at t is the mean from t - delay - window to t - delay.
struct Lag {
  Seconds window;
  Seconds delay;
};

// Where to look for the lag: every combination is tried, then the best is refined.
struct LagGrid {
  std::vector<Seconds> windows;
  std::vector<Seconds> delays;
};

// reading(t) = slow drift (a cubic) + step * busy share of the reading's window.
struct StepFit {
  Lag lag;
  Lag sigma;  // Standard deviations.
  double step;
  double noise;  // Root mean square of what is left.
};

// Least squares over the readings, of which there must be more than ten, in the order of time.
// nullopt when they do not determine all unknowns.
std::optional<StepFit> FitStep(std::vector<SensorReading> readings, const LoadPattern& load,
                               const LagGrid& grid);

}  // namespace zeus::calibration
