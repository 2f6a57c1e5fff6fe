#pragma once

#include <vector>

#include "zeus/base/stepped_clock.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/testing/scripted_meter.h"

namespace zeus::testing {

// A recorded device of constant power in virtual time, so that the energy of an epoch is known.
class TrainingBench {
 public:
  explicit TrainingBench(Watts power) : monitor(clock, Powered(power)) {
    clock.Run([this] { return monitor.Step(); });
    clock.Advance(Seconds(2));
  }

  SteppedClock clock;
  ScriptedMeter meter{clock, {.counter_period = Seconds(0.1), .phase = Seconds(0.037)}};
  EnergyMonitor monitor;

 private:
  // The counter must count before the monitor reads it for the first time.
  std::vector<MonitoredDevice> Powered(Watts power) {
    meter.SetPower(TimePoint(), power);
    return {{.meter = &meter}};
  }
};

}  // namespace zeus::testing
