#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "apps/zeus/calibrate/load.h"
#include "zeus/base/clock.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/calibration/gain_fit.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {

// One sensor of a GPU while it is recorded.
struct RecordedSensor {
  calibration::SensorTrace trace;
  std::optional<Error> error;  // Error of the first reading that failed.
};

// A GPU, its load, and the recordings of both.
struct RecordedGpu {
  Gpu* gpu;
  std::unique_ptr<SwitchedLoad> switched_load;

  calibration::LoadPattern load{};
  RecordedSensor instant_power{};
  RecordedSensor average_power{};
  RecordedSensor counter{};
};

// The stretches in which the load is idle and busy in turn, beginning with idle.
struct LoadSchedule {
  Seconds period;    // Average period of the square wave.
  Seconds duration;  // Total of all stretches.
  // Reserves half of the time for long stretches, because a meter is slower than the board's
  // sensors.
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
                            const std::vector<Seconds>& schedule, SignalWatch& signals);

}  // namespace zeus::cli
