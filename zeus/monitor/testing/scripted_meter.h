#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/energy_meter.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::testing {

// A device whose exact power is scripted, behind a sensor with a given update period, averaging
// window and phase: what an estimator sees, and the truth to compare with.
class ScriptedMeter final : public EnergyMeter {
 public:
  struct Sensor {
    std::optional<Seconds> counter_period;  // Without one there is only power.
    Seconds power_period{0.1};
    Seconds power_window{0.1};
    Seconds phase{0};
    double gain = 1.0;
  };

  ScriptedMeter(Clock& clock, Sensor sensor, std::string name = "gpu:0");

  // From `begin` on, until the next one. In order of time.
  void SetPower(TimePoint begin, Watts power);

  // While set, readings fail.
  void Fail(std::optional<Error> error) { failure_ = std::move(error); }

  const std::string& name() const override { return name_; }
  Result<EnergyReading> Energy() override;
  Result<Watts> Power() override;

  Joules ExactEnergy(TimePoint begin, TimePoint end) const;

 private:
  struct Level {
    TimePoint begin;
    Watts power;
    Joules before;  // Energy from the first level up to `begin`.
  };

  Joules Cumulative(TimePoint time) const;
  TimePoint LastUpdate(Seconds period) const;

  Clock& clock_;
  Sensor sensor_;
  std::string name_;
  std::vector<Level> levels_;
  std::optional<Error> failure_;
};

// Records until `time`: steps when the monitor wants to, as its thread would.
void RecordUntil(Clock& clock, EnergyMonitor& monitor, TimePoint time);

}  // namespace zeus::testing
