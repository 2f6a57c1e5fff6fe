#pragma once

#include <cstdint>
#include <optional>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus::amd {

// Finds counters that stand still although the board draws power: firmware and driver bugs that
// last until the process or the machine restarts (rocm_smi_lib issue 180, amdsmi issue 38). It
// watches ordinary readings, so nothing has to wait at start-up. Not thread-safe.
class StillCounter {
 public:
  // Above this a counter of 15 uJ ticks moves within any millisecond. Below it the board may
  // sleep with its firmware, and a still counter proves nothing.
  static constexpr Watts kIdlePower{10.0};
  static constexpr Seconds kPatience{1.0};

  // A reading of the counter. False when it is the same as the last: then tell the power too.
  bool Moved(TimePoint now, std::uint64_t ticks);

  // The power reported beside a counter that did not move; empty if it could not be read.
  void SawPower(TimePoint now, std::optional<Watts> power);

  // From more than kPatience of stillness that ended under load until the counter moves. The load
  // need not have been seen all the time: a counter that works and stands still for a second
  // belongs to a board that sleeps, and one that draws power has not slept for a millisecond.
  bool stale() const { return stale_; }

  // How often it was stale: energy of those times is lost to the counter.
  std::uint64_t spells() const { return spells_; }

 private:
  std::optional<std::uint64_t> last_;
  TimePoint still_since_;  // The last moment at which standing still was no surprise.
  bool stale_ = false;
  std::uint64_t spells_ = 0;
};

}  // namespace zeus::amd
