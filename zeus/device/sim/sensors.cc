#include "zeus/device/sim/sensors.h"

#include <algorithm>
#include <cmath>

namespace zeus::sim {

BoardSensors BoardSensors::Draw(const SensorSpec& spec, Random random) {
  BoardSensors board{};
  board.gain = random.Uniform(1.0 - spec.gain_spread, 1.0 + spec.gain_spread);
  board.offset = spec.offset_spread * random.Uniform(-1.0, 1.0);
  board.power_phase = spec.power_update * random.Uniform();
  board.average_phase = spec.power_update * random.Uniform();
  board.counter_phase = spec.counter_update.value_or(Seconds(0)) * random.Uniform();
  return board;
}

Seconds LastUpdate(Seconds now, Seconds period, Seconds phase) {
  const double count = std::floor((now - phase) / period);
  const Seconds update = phase + count * period;
  // Rounding may put it just after now.
  return update <= now ? update : phase + (count - 1.0) * period;
}

void CounterRegister::Update(Seconds instant, Joules measured) {
  instant_ = instant;
  measured_ = measured;
}

void CounterRegister::Restart() { origin_ = measured_; }

void CounterRegister::Freeze() {
  if (!frozen_) frozen_ = millijoules();
}

std::uint64_t CounterRegister::millijoules() const {
  if (frozen_) return *frozen_;
  return static_cast<std::uint64_t>(std::max(0.0, std::floor((measured_ - origin_).ToMilli())));
}

}  // namespace zeus::sim
