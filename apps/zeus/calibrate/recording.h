#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "apps/zeus/calibrate/switched_load.h"
#include "apps/zeus/signals.h"
#include "zeus/base/clock.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/calibration/gain_fit.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::cli {

// One sensor of a GPU while it is recorded.
struct RecordedSensor {
  calibration::SensorTrace trace;
  std::optional<Error> error;  // Of the first reading that failed.
};

// A GPU, its load and what was recorded of both.
struct RecordedGpu {
  Gpu* gpu;
  std::unique_ptr<SwitchedLoad> switched_load;

  calibration::LoadPattern load{};
  RecordedSensor instant_power{};
  RecordedSensor average_power{};
  RecordedSensor counter{};
};

// Which stretches the load is idle and busy in turn, beginning with idle.
struct LoadSchedule {
  Seconds period;    // Of the square wave, on average.
  Seconds duration;  // Of everything.
  // A meter is slower than the board's sensors: half of the time goes to long stretches.
  bool for_meter = false;
};
std::vector<Seconds> MakeSchedule(const LoadSchedule& schedule);

struct RecordingEnd {
  TimePoint time;
  calibration::ClockPair clocks;
};

// Switches the loads of all GPUs together and polls their sensors meanwhile. kUnavailable when a
// load fails or the user interrupts.
Result<RecordingEnd> Record(Clock& clock, std::vector<RecordedGpu>& gpus,
                            const std::vector<Seconds>& schedule, Signals& signals);

}  // namespace zeus::cli
