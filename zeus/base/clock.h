#pragma once

#include <chrono>

#include "zeus/base/units.h"

namespace zeus {

// Monotonic time, for durations and integration.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Seconds>;

// Time of day (UTC), for labelling records. It steps when the clock is set: never subtract.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// The only source of time. Nothing outside clock.cc calls std::chrono::*::now() or sleeps.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic time. Differences are meaningful, absolute values are not.
  virtual TimePoint Now() const = 0;

  virtual WallTime WallNow() const = 0;

  // Returns when Now() >= deadline.
  virtual void SleepUntil(TimePoint deadline) = 0;

  void SleepFor(Seconds duration) { SleepUntil(Now() + duration); }
};

// The clock of the operating system. Thread-safe.
class SystemClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime WallNow() const override;
  void SleepUntil(TimePoint deadline) override;
};

// Time that moves only by calls: a sleep is a jump. A simulated week costs milliseconds and
// gives the same numbers on every run. Single-threaded.
class VirtualClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  WallTime WallNow() const override;
  void SleepUntil(TimePoint deadline) override;
  void Advance(Seconds by) { SleepUntil(now_ + by); }

 private:
  TimePoint now_{};
};

}  // namespace zeus
