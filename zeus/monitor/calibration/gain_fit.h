#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/meter_csv.h"
#include "zeus/monitor/calibration/response.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::calibration {

// One moment on both clocks: recordings are on the monotonic one, logs of meters on the other.
struct ClockPair {
  TimePoint monotonic;
  WallTime wall;

  TimePoint ToMonotonic(WallTime time) const { return monotonic + Seconds(time - wall); }
};

// How the board's sensor reports what an external meter says: reported = gain * meter + offset.
struct GainFit {
  double gain;
  double gain_sigma;
  Watts offset;
  Watts offset_sigma;
  double r_squared;
  int plateaus;         // Stretches of steady load that were compared.
  Seconds meter_delay;  // How late the meter shows what happened.
};

struct GainFitInput {
  const SensorTrace& watts;  // Readings of the power sensor …
  const Response& response;  // … that answers like this.
  const LoadPattern& load;
  TimePoint end;  // When the recording ended.
  const std::vector<MeterSample>& meter;
  ClockPair clocks;
  std::optional<Seconds> meter_delay;  // Found by correlation with the load where it is not given.
};

// Weighted least squares over the stretches of steady load. kInvalidArgument when meter and
// recording have no time in common or the meter does not show the load, kUnavailable when there are
// too few stretches or their powers do not differ.
Result<GainFit> FitGain(const GainFitInput& input);

}  // namespace zeus::calibration
