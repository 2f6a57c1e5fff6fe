#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "zeus/base/random.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

// A setting whose changes take effect later: what was requested, what is in effect, and the
// changes on their way, which arrive in the order in which they were requested. Trivially
// copyable. One owner.
template <class T>
class Delayed {
 public:
  explicit Delayed(const T& value) : requested_(value), effective_(value) {}

  const T& requested() const { return requested_; }
  const T& effective() const { return effective_; }

  // When too many changes are on their way the last one is replaced.
  void Request(const T& value, Seconds arrival) {
    requested_ = value;
    if (size_ == changes_.size()) {
      changes_[size_ - 1].value = value;
      return;
    }
    if (size_ > 0) arrival = std::max(arrival, changes_[size_ - 1].arrival);
    changes_[size_++] = {.value = value, .arrival = arrival};
  }

  // In effect at once; changes on their way are lost.
  void Force(const T& value) {
    requested_ = effective_ = value;
    size_ = 0;
  }

  Seconds next_arrival() const {
    return size_ > 0 ? changes_[0].arrival : Seconds(std::numeric_limits<double>::infinity());
  }

  void ApplyDue(Seconds now) {
    while (size_ > 0 && changes_[0].arrival <= now) {
      effective_ = changes_[0].value;
      std::copy(changes_.begin() + 1, changes_.begin() + size_, changes_.begin());
      --size_;
    }
  }

 private:
  struct Change {
    T value;
    Seconds arrival;
  };

  T requested_;
  T effective_;
  std::array<Change, 8> changes_{};
  std::size_t size_ = 0;
};

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
