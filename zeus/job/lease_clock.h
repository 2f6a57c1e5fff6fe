#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/boot_time.h"
#include "zeus/base/clock.h"

namespace zeus {

// A reading of a lease clock that is kept, so that the next process goes on from there.
struct LeaseTick {
  WallTime lease{};  // The lease clock,
  WallTime wall{};   // and the time of day then,
  BootTime boot{};   // and the time since that machine was started.

  friend bool operator==(const LeaseTick& a, const LeaseTick& b) {
    return a.lease == b.lease && a.wall == b.wall && a.boot.boot == b.boot.boot &&
           a.boot.since == b.boot.since;
  }
};

// The time by which leases of trials run out. It was the time of day when the database was made (or
// when it was first used by a program that has this clock), and has since gone on at the pace of
// clocks that nobody can set: whoever sets the time of day ends no lease and prolongs none.
// Processes that share a database agree on it through the tick that they keep there. Thread-safe.
class LeaseClock {
 public:
  // Whether the clock has gone on while no process was there to move it.
  enum class Absence {
    kCounted,  // For processes that come and go: who died before them is dead.
    kLeftOut,  // For a server: nobody could report to it meanwhile.
  };

  LeaseClock(const Clock& clock, Absence absence, BootClock boot_clock)
      : clock_(clock), absence_(absence), boot_clock_(std::move(boot_clock)) {}

  // Before anything else, with what is kept.
  void Begin(const std::optional<LeaseTick>& kept);
  bool has_begun() const;

  WallTime Now() const;
  // Another process may be ahead.
  void CatchUp(const LeaseTick& kept);
  // To keep now. nullopt when the last one was taken less than `period` ago.
  std::optional<LeaseTick> TickEvery(Seconds period);
  // The time of day at which the lease clock will show `lease`. Small differences, which reading
  // two clocks one after the other makes, are none.
  WallTime TimeOfDay(WallTime lease) const;

 private:
  WallTime NowLocked() const;

  const Clock& clock_;
  const Absence absence_;
  const BootClock boot_clock_;
  mutable std::mutex mutex_;
  bool begun_ = false;  // Guarded by mutex_, as are the next.
  WallTime lease_{};    // At start_.
  TimePoint start_{};
  std::optional<TimePoint> kept_at_{};
};

}  // namespace zeus
