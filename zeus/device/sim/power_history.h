#pragma once

#include <array>
#include <cstddef>

#include "zeus/base/units.h"
#include "zeus/device/sim/step_profile.h"
#include "zeus/device/sim/thermal.h"

namespace zeus::sim {

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
