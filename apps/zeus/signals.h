#pragma once

#include <signal.h>

#include "zeus/base/clock.h"

namespace zeus::cli {

// Takes over the signals that end a program in good order, SIGHUP, and the one of a resized
// terminal, for its lifetime. They interrupt a wait instead of the program. Signals that
// the caller had us ignore (nohup) stay ignored. Other threads must not take signals: a Ticker's
// do not. A reader of our output that goes away becomes an error of the write.
class Signals {
 public:
  // Who has a terminal ends with it; a service is told by SIGHUP to open its files again.
  enum class Program { kOfTerminal, kService };
  explicit Signals(Program program);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  enum class Event { kTime, kStop, kResize, kReopen };
  // Returns at `deadline`, or earlier with the signal that came.
  Event WaitUntil(TimePoint deadline, const Clock& clock);

 private:
  const Program program_;
  sigset_t ours_{};
  sigset_t before_{};
  struct sigaction pipe_before_ {};
};

}  // namespace zeus::cli
