#pragma once

#include <mutex>
#include <optional>

#include "apps/zeus/signals.h"
#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"

namespace zeus::cli {

// Once it is armed, ends the process with exit code 6, from wherever it hangs, at the next signal
// or at a deadline, unless it is destroyed before: workers cannot be joined while their database
// does not answer. What is committed is committed; only answers are lost. Its thread is there from
// the beginning, because at the end there may be none to be had.
class LastResort {
 public:
  // Throws std::system_error when there is no thread for it.
  LastResort(Signals& signals, const Clock& clock);

  // Takes the signals from now on. The deadline is a second from now at the earliest.
  void Arm(TimePoint deadline);

 private:
  TimePoint Step();
  std::optional<TimePoint> deadline() const;

  Signals& signals_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::optional<TimePoint> deadline_{};  // Guarded by mutex_. nullopt: not armed.
  const char* why_ = nullptr;            // Once it is decided.
  Ticker ticker_;
};

}  // namespace zeus::cli
