#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/process.h"

namespace zeus {

// A reading of a lease clock. It is kept in the database, so that the next process continues there.
struct LeaseTick {
  WallTime lease{};  // The time of the lease clock.
  WallTime wall{};   // The time of day at the same moment.
  BootTime boot{};   // The time since the machine was started, at the same moment.

  friend bool operator==(const LeaseTick& a, const LeaseTick& b) {
    return a.lease == b.lease && a.wall == b.wall && a.boot.boot == b.boot.boot &&
           a.boot.since == b.boot.since;
  }
};

// The clock by which leases of trials expire. It starts with the time of day when the database is
// first used, and then follows monotonic clocks, so setting the time of day neither ends nor
// prolongs a lease. Processes that share a database agree through the tick that they keep there.
// Thread-safe.
class LeaseClock {
 public:
  // Whether the clock advances while no process uses the database.
  enum class Absence {
    kCounted,  // For short-lived processes: trials that went silent before them expire.
    kLeftOut,  // For a server: trials could not report while it was down.
  };

  LeaseClock(const Clock& clock, Absence absence, BootClock boot_clock)
      : clock_(clock), absence_(absence), boot_clock_(std::move(boot_clock)) {}

  // Is called first, with the tick that is kept in the database.
  void Begin(const std::optional<LeaseTick>& kept);
  bool has_begun() const;

  WallTime Now() const;
  // Advances the clock to the tick of another process, if that is ahead.
  void CatchUp(const LeaseTick& kept);
  // Returns a tick to keep; nullopt when the previous one was returned less than `period` ago.
  std::optional<LeaseTick> TickEvery(Seconds period);
  // Returns the time of day at which the lease clock will show `lease`. Differences below a second,
  // which come from reading two clocks one after the other, are ignored.
  WallTime TimeOfDay(WallTime lease) const;

 private:
  WallTime NowLocked() const;

  const Clock& clock_;
  const Absence absence_;
  const BootClock boot_clock_;
  mutable std::mutex mutex_;
  // The members below are guarded by mutex_.
  bool begun_ = false;
  WallTime lease_{};  // The lease clock at start_.
  TimePoint start_{};
  std::optional<TimePoint> kept_at_{};
};

}  // namespace zeus
