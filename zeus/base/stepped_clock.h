#pragma once

#include <functional>
#include <vector>

#include "zeus/base/clock.h"

namespace zeus {

// Virtual time in which recurring work runs when it is due. A Ticker runs it on a thread of its
// own; here it runs while the program sleeps, in the order of time and on the sleeping thread, so
// that a program with recorders gives the same numbers on every run. Single-threaded.
class SteppedClock final : public Clock {
 public:
  TimePoint Now() const override { return clock_.Now(); }
  WallTime WallNow() const override { return clock_.WallNow(); }
  void SleepUntil(TimePoint deadline) override;
  void Advance(Seconds by) { SleepUntil(Now() + by); }

  // `step` is first called at once, then each time at the moment that the last call returned, as by
  // a Ticker. It must outlive the clock's use.
  void Run(std::function<TimePoint()> step);

 private:
  struct Task {
    std::function<TimePoint()> step;
    TimePoint due;
  };

  VirtualClock clock_;
  std::vector<Task> tasks_;
  bool running_ = false;  // A task that sleeps moves the time but starts no other task.
};

}  // namespace zeus
