#pragma once

#include "zeus/base/clock.h"

namespace zeus {

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
