#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

// The power of a repeated training step: it computes at `high` for the share `duty` of a period,
// then waits for input at `low`. A plain draw is the case high == low. In closed form, so that a
// million steps cost as much as one. `phase` is the position inside a step (0 to 1) at time zero.
struct StepProfile {
  Watts low;
  Watts high;
  Seconds period{1.0};
  double duty = 1.0;
  double phase = 0.0;

  bool constant() const { return low == high; }
  Watts mean() const { return low + (high - low) * duty; }

  Watts PowerAt(Seconds time) const;
  Joules EnergyUntil(Seconds time) const;  // From time zero on.
  double PositionAt(Seconds time) const;   // Inside a step, 0 to 1.
};

// A profile that draws `power` all the time.
StepProfile ConstantProfile(Watts power);

// A profile with the given mean whose compute level stays at or below between.max and whose gap
// draws no less than between.min, where the mean must lie too.
StepProfile TwoLevelProfile(Watts mean, const PowerRange& between, Seconds period, double duty);

// Temperature while the power stays the same on average: a first-order approach from `start` to
// `settled`. Leakage closes a loop (hotter draws more, which heats more); the loop is linear, so
// it only changes where the temperature settles and how fast.
struct ThermalPath {
  Celsius start;
  Celsius settled;
  Seconds time_constant{1.0};

  // Power that leaks beyond the nominal one: leakage * (temperature - reference). Nominal powers
  // are those of a board that has settled in its nominal ambient, as published and recorded ones
  // are; a cold board draws a little less, one in a hot room a little more.
  double leakage_watts_per_kelvin = 0.0;
  Celsius reference;

  Celsius TemperatureAt(Seconds time) const;
  Watts LeakageAt(Seconds time) const;
  Joules LeakageUntil(Seconds time) const;  // From time zero on.

  // When the temperature reaches `target`; nullopt if it never does. Zero if it is there already
  // and goes on in that direction.
  std::optional<Seconds> TimeToRise(Celsius target) const;
  std::optional<Seconds> TimeToFall(Celsius target) const;
};

enum class Leakage {
  kFollowsTemperature,
  kInsideLimit,  // A board that holds its power limit trades leakage for clock.
};

// Computes the path of a board that starts at temperature `start` and draws `power` in a room of
// `ambient`.
ThermalPath Heat(const ThermalSpec& spec, Celsius ambient, Celsius start, Watts power,
                 Leakage leakage);

// A sum of many energies that keeps what rounding would lose (Neumaier), so that a week of a
// million small additions is as exact as one.
class EnergySum {
 public:
  void Add(Joules energy) {
    const double value = energy.value();
    const double sum = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }

  Joules Total() const { return Joules(sum_ + lost_); }

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;
};

// A stretch of time without events: neither load nor knobs nor throttling change.
struct Regime {
  Seconds start{};
  StepProfile profile;
  ThermalPath thermal{};

  Watts PowerAt(Seconds time) const;
  Joules EnergyUntil(Seconds time) const;  // Energy since the start of the regime.
  Joules EnergyBetween(Seconds begin, Seconds end) const;
};

// The regimes that ended within the last second or so: what sensors that average over a window
// need to look back at. Bounded: when too much happens within that time, the oldest regimes
// merge into one of the same energy. Trivially copyable. One owner.
class PowerHistory {
 public:
  // The longest window (1 s) ends at the last update of its sensor (up to 0.1 s ago).
  static constexpr Seconds kReach{1.25};

  // `before` is the power before time zero.
  explicit PowerHistory(Watts before) : before_(before) {}

  // `regime` ended at `end`, where the next one starts.
  void Push(const Regime& regime, Seconds end);

  // Energy in [begin, end], which must lie before the end of the last regime pushed and not
  // further back than kReach from there.
  Joules EnergyBetween(Seconds begin, Seconds end) const;

 private:
  static constexpr std::size_t kCapacity = 40;

  Regime& At(std::size_t i) { return regimes_[(first_ + i) % kCapacity]; }
  const Regime& At(std::size_t i) const { return regimes_[(first_ + i) % kCapacity]; }
  void MakeRoom(Seconds now);

  Watts before_;
  std::array<Regime, kCapacity> regimes_{};
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  Seconds end_{};
};

}  // namespace zeus::sim
