#pragma once

#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::calibration {

// Readings of one instrument. Each tells the mean of the `span` that ended `delay` before it.
struct InstrumentLog {
  std::vector<SensorReading> readings;  // In the order of time.
  Seconds span;
  Seconds delay;
};

// A stretch of steady load that two instruments saw: means in watts, and variances of the means.
struct Plateau {
  double reported;
  double reported_variance;
  double meter;
  double meter_variance;
};

// The stretches between switches, up to `end`, for which both have at least one reading that saw
// nothing else.
std::vector<Plateau> FindPlateaus(const LoadPattern& load, TimePoint end,
                                  const InstrumentLog& reported, const InstrumentLog& meter);

}  // namespace zeus::calibration
