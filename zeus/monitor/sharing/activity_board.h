#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/clock.h"

namespace zeus {

// Says which processes of a node measure which devices when, so that ranks that measure the same
// GPU split its energy instead of each claiming all of it. Every process writes when it begins and
// ceases to use a device, and reads what the others wrote.
class ActivityBoard {
 public:
  virtual ~ActivityBoard() = default;

  // From `time` on this process uses `device` with `weight` (0: no longer). `device` counts the
  // keys given at construction. Times do not decrease. No system call: it is on the hot path.
  virtual void Announce(TimePoint time, unsigned device, double weight) = 0;

  // The total weight of the *other* processes on `device` changed to `weight` at `time`.
  struct Change {
    TimePoint time;
    unsigned device;
    double weight;
  };

  // The changes since the last call, in order of time; none lies before one returned earlier.
  // A process that stopped giving signs of life counts as gone from its last sign on.
  // Called regularly by one thread; also the sign of life of this process.
  virtual std::vector<Change> Poll(TimePoint now) = 0;

  // All changes up to this time were returned by Poll(): what the others announced later than that
  // may still be on its way.
  virtual TimePoint known_until() const = 0;
};

}  // namespace zeus
