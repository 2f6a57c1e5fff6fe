#pragma once

#include <signal.h>

#include <functional>

#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"

namespace zeus::cli {

// Takes over SIGINT, SIGTERM and SIGHUP for its lifetime: they interrupt a wait instead of the
// program. Those that the caller had us ignore (nohup) stay ignored. Other threads must not take
// signals: a Ticker's do not. A reader of our output that goes away becomes an error of the write.
class ServeSignals {
 public:
  ServeSignals();
  ~ServeSignals();
  ServeSignals(const ServeSignals&) = delete;
  ServeSignals& operator=(const ServeSignals&) = delete;

  enum class Event { kTime, kStop, kReopen };
  // Returns at `deadline`, or earlier with the signal that came.
  Event WaitUntil(TimePoint deadline, const Clock& clock);

 private:
  sigset_t ours_{};
  sigset_t before_{};
  struct sigaction pipe_before_ {};
};

// Ends the process with exit code 6, from wherever it hangs, at the next signal or at `deadline`,
// unless it is destroyed before: workers cannot be joined while their database does not answer.
// What is committed is committed; only answers are lost.
class LastResort {
 public:
  LastResort(ServeSignals& signals, TimePoint deadline, const Clock& clock);

 private:
  TimePoint Step();

  ServeSignals& signals_;
  const TimePoint deadline_;
  const Clock& clock_;
  const char* why_ = nullptr;  // Once it is decided.
  Ticker ticker_;
};

}  // namespace zeus::cli
