#include "zeus/monitor/testing/scripted_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeus::testing {

ScriptedMeter::ScriptedMeter(Clock& clock, Sensor sensor, std::string name)
    : clock_(clock), sensor_(sensor), name_(std::move(name)) {}

void ScriptedMeter::SetPower(TimePoint begin, Watts power) {
  levels_.push_back({.begin = begin, .power = power, .before = Cumulative(begin)});
}

// The first level also holds before it began.
Joules ScriptedMeter::Cumulative(TimePoint time) const {
  if (levels_.empty()) return Joules(0);
  const auto after = std::ranges::upper_bound(levels_, time, {}, &Level::begin);
  const Level& level = after == levels_.begin() ? *after : *std::prev(after);
  return level.before + level.power * (time - level.begin);
}

Joules ScriptedMeter::ExactEnergy(TimePoint begin, TimePoint end) const {
  return Cumulative(end) - Cumulative(begin);
}

TimePoint ScriptedMeter::LastUpdate(Seconds period) const {
  const Seconds now = clock_.Now().time_since_epoch();
  return TimePoint(sensor_.phase + std::floor((now - sensor_.phase) / period + 1e-9) * period);
}

Result<EnergyReading> ScriptedMeter::Energy() {
  if (failure_) return *failure_;
  if (!sensor_.counter_period)
    return Error{ErrorCode::kNotSupported, "read energy: this device has no counter"};
  // A counter in whole millijoules that began long before the script.
  const double millijoules =
      (Cumulative(LastUpdate(*sensor_.counter_period)) * sensor_.gain).ToMilli();
  return EnergyReading{.total = Joules::FromMilli(1e9 + std::floor(millijoules)),
                       .epoch = 0,
                       .taken_at = std::nullopt};
}

Result<Watts> ScriptedMeter::Power() {
  if (failure_) return *failure_;
  const TimePoint update = LastUpdate(sensor_.power_period);
  const Watts mean =
      ExactEnergy(update - sensor_.power_window, update) / sensor_.power_window * sensor_.gain;
  return Watts::FromMilli(std::floor(mean.ToMilli()));
}

void RecordUntil(Clock& clock, EnergyMonitor& monitor, TimePoint time) {
  for (TimePoint next = monitor.Step(); next <= time; next = monitor.Step()) clock.SleepUntil(next);
  clock.SleepUntil(time);
}

}  // namespace zeus::testing
