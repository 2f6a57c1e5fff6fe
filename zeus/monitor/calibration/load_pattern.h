#pragma once

#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus::calibration {

enum class LoadState { kIdle, kBusy };

// When the load of a GPU was switched, as it was commanded. Idle before the first switch. One
// owner.
class LoadPattern {
 public:
  struct Switch {
    TimePoint time;
    LoadState state;
  };

  // Times must not decrease. Switching to the present state changes nothing.
  void Add(TimePoint time, LoadState state);

  const std::vector<Switch>& switches() const { return switches_; }

  // Time spent busy up to `time`. The last state goes on for ever.
  Seconds BusyTime(TimePoint time) const;

  // Part of the time from `begin` to `end` (later) that was busy, 0 to 1.
  double BusyShare(TimePoint begin, TimePoint end) const;

 private:
  std::vector<Switch> switches_;
  std::vector<Seconds> busy_before_;  // Entry i: up to switches_[i].
};

// Lengths of the states of a square wave with that mean period, idle and busy in turn, for
// `duration` altogether. They vary by a quarter in a fixed irregular order: a sensor whose updates
// were in step with the load would look at the same moments of it again and again.
std::vector<Seconds> SquareWave(Seconds period, Seconds duration);

}  // namespace zeus::calibration
