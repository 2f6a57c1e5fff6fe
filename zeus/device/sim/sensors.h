#pragma once

#include <cstdint>
#include <optional>

#include "zeus/base/random.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

// The differences between two boards of a model: the errors of their sensors and the times of their
// updates.
struct BoardSensors {
  double gain;  // reported = gain * true + offset
  Watts offset;
  Seconds power_phase;  // When instant power updates.
  Seconds
      average_phase;  // When the 1-s average updates, and memory power, which is such an average.
  Seconds counter_phase;

  static BoardSensors Draw(const SensorSpec& spec, Random random);

  Watts Reported(Watts power) const { return power * gain + offset; }
};

// The last instant at or before `now` at which a sensor with that period and phase updated.
// May lie before time zero.
Seconds LastUpdate(Seconds now, Seconds period, Seconds phase);

// The energy counter of a board: the integral of what its power sensor means, in whole
// millijoules, changing only at update instants. Trivially copyable. One owner.
class CounterRegister {
 public:
  // Counter energy at an update instant, which must not lie before the last one.
  void Update(Seconds instant, Joules measured);
  Seconds last_update() const { return instant_; }

  // Driver reload: counts from zero again.
  void Restart();
  void Freeze();
  void Thaw() { frozen_.reset(); }

  std::uint64_t millijoules() const;

 private:
  Seconds instant_{-1e9};
  Joules measured_{};
  Joules origin_{};
  std::optional<std::uint64_t> frozen_;
};

}  // namespace zeus::sim
