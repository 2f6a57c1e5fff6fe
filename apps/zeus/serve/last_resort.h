#pragma once

#include "apps/zeus/signals.h"
#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"

namespace zeus::cli {

// Ends the process with exit code 6, from wherever it hangs, at the next signal or at `deadline`,
// which is a second from now at the earliest, unless it is destroyed before: workers cannot be
// joined while their database does not answer. What is committed is committed; only answers are
// lost.
class LastResort {
 public:
  LastResort(Signals& signals, TimePoint deadline, const Clock& clock);

 private:
  TimePoint Step();

  Signals& signals_;
  const TimePoint deadline_;
  const Clock& clock_;
  const char* why_ = nullptr;  // Once it is decided.
  Ticker ticker_;
};

}  // namespace zeus::cli
