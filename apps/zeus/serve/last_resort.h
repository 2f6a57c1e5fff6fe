#pragma once

#include <mutex>
#include <optional>

#include "apps/zeus/signals.h"
#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"

namespace zeus::cli {

// Ends a process that hangs during shutdown. Once armed, it ends the process with exit code 6 at
// the next signal or at a deadline, unless it is destroyed before: workers cannot be joined while
// their database does not answer. Committed changes are safe; only answers are lost. Its thread
// starts with the object, because at the end there may be no resources for one.
class LastResort {
 public:
  // Throws std::system_error when no thread can be started.
  LastResort(Signals& signals, const Clock& clock);

  // Receives the signals from now on. The deadline is at least a second from now.
  void Arm(TimePoint deadline);

 private:
  TimePoint Step();
  std::optional<TimePoint> deadline() const;

  Signals& signals_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::optional<TimePoint> deadline_{};  // Guarded by mutex_. nullopt: not armed.
  const char* why_ = nullptr;            // The reason for ending, once it is decided.
  Ticker ticker_;
};

}  // namespace zeus::cli
