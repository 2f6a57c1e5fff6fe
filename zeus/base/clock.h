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

// Time that passes faster than a clock's by a constant factor, as on a simulated node. Thread-safe
// if the clock is; it must outlive this one.
class ScaledClock final : public Clock {
 public:
  ScaledClock(Clock& clock, double scale) : clock_(clock), origin_(clock.Now()), scale_(scale) {}

  TimePoint Now() const override { return origin_ + (clock_.Now() - origin_) * scale_; }
  WallTime WallNow() const override { return clock_.WallNow(); }
  void SleepUntil(TimePoint deadline) override { clock_.SleepUntil(Unscaled(deadline)); }

  double scale() const { return scale_; }

  // The same moment by the clock underneath.
  TimePoint Unscaled(TimePoint time) const { return origin_ + (time - origin_) / scale_; }

 private:
  Clock& clock_;
  const TimePoint origin_;
  const double scale_;
};

}  // namespace zeus
