#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/monitor/calibration/gain_fit.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::calibration::testing {

struct Scenario {
  Seconds period{0.5};
  Seconds duration{20};
  Watts demand{220};
  Seconds command_latency{0};  // From the command to the load.
  Watts noise{0};              // Noise of instant power.
  int missed_command = -1;

  // An external meter measures this GPU, other consumers and noise of its own.
  Seconds meter_interval{0.1};
  Seconds meter_delay{0};
  Watts meter_noise{0};
  Watts other_consumers{0};
};

// A simulated GPU under a square-wave load, polled as `zeus calibrate` does, and what a meter
// logged meanwhile. One owner.
class RecordedGpu {
 public:
  RecordedGpu(std::string_view model, const Scenario& scenario, std::uint64_t seed = 5);

  LoadPattern load;
  SensorTrace instant;
  SensorTrace average;
  SensorTrace counter;
  std::vector<MeterSample> meter;

  ClockPair clocks() const { return {clock_.Now(), clock_.WallNow()}; }
  TimePoint end() const { return clock_.Now(); }
  VirtualClock& clock() { return clock_; }
  sim::SimulatedGpu& gpu() { return gpu_; }
  sim::BoardSensors truth() { return gpu_.Snapshot().board_sensors(); }

 private:
  void Watch(Seconds duration);
  void Poll();
  void LogMeter();

  VirtualClock clock_;
  const Scenario scenario_;
  Random random_;
  sim::SimulatedGpu gpu_;
  Watts shown_{};
  Watts noise_{};
  TimePoint meter_due_{};
  Joules meter_energy_{};
};

}  // namespace zeus::calibration::testing
