#pragma once

#include <signal.h>

#include "zeus/base/clock.h"

namespace zeus::cli {

// Receives SIGINT, SIGTERM, SIGHUP and SIGWINCH for its lifetime, for programs with a main loop:
// signals interrupt a wait instead of the program. The signals are blocked, so every thread must be
// started after construction or block them itself, as a Ticker does. Signals that were ignored
// before (nohup) stay ignored. Writing to a reader that went away fails instead of raising SIGPIPE.
// One owner, one at a time.
class Signals {
 public:
  // SIGHUP ends an interactive program, and makes a service open its files again. A load takes
  // SIGINT and SIGTERM even where they are ignored, as in the background of a script, which ends it
  // by them.
  enum class Program { kInteractive, kLoad, kService };
  explicit Signals(Program program);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  enum class Event { kTime, kStop, kResize, kReopen };
  // Returns at `deadline`, or earlier when a signal arrives.
  Event WaitUntil(TimePoint deadline, const Clock& clock);

  // The first signal that asked the program to stop, 0 when none did. Does not wait: for loops that
  // sleep elsewhere.
  int stop_signal();

 private:
  Event EventFor(int signal);

  const Program program_;
  sigset_t watched_{};
  sigset_t mask_before_{};
  struct sigaction pipe_before_ {};
  int stop_signal_ = 0;
};

}  // namespace zeus::cli
