#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <memory>
#include <optional>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// Turns signals into events: while an object lives, the signals that it watches wait until one of
// its functions reads them. They are blocked, and threads inherit the signal mask: make the object
// before the first thread, or let the thread block them itself, as a Ticker does. One per process,
// one owner.
//
// A program that supervises a command asks for the signals themselves (Next() and its siblings) and
// passes them on. A program with a main loop asks for events (WaitUntil(), stop_signal()).
class SignalWatch {
 public:
  // Which signals are watched. A supervisor gets all that end, stop or inform a process. The others
  // get SIGINT, SIGTERM and SIGHUP; those that were ignored before (nohup) stay ignored, and
  // writing to a reader that went away fails instead of raising SIGPIPE. SIGHUP makes a service
  // open its files again and ends the others. An interactive program gets SIGWINCH too. A load gets
  // SIGINT and SIGTERM even where they are ignored, as in the background of a script, which ends it
  // by them.
  enum class Program { kSupervisor, kInteractive, kLoad, kService };
  static Result<std::unique_ptr<SignalWatch>> Start(Program program = Program::kSupervisor);
  // Watches no signal and changes nothing: for programs that handle signals themselves.
  static Result<std::unique_ptr<SignalWatch>> WatchNothing();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  using Signal = ::signalfd_siginfo;

  // Waits for the next signal.
  Signal Next();
  // Waits at most `timeout` for the next signal.
  std::optional<Signal> NextWithin(Seconds timeout);
  // The same, but returns nullopt as soon as `descriptor` is readable.
  std::optional<Signal> NextUnless(int descriptor, Seconds timeout);

  enum class Event { kTime, kStop, kResize, kReopen };
  // Returns at `deadline`, or earlier when a signal arrives. For main loops.
  Event WaitUntil(TimePoint deadline, const Clock& clock);

  // The first signal that asked a main loop to stop, 0 when none did. Does not wait: for loops that
  // sleep elsewhere.
  int stop_signal();

  // Readable while a signal waits: for poll() together with other descriptors.
  int descriptor() const { return signals_.get(); }

  // Restores the mask and the disposition that this process was started with. For a child between
  // fork() and exec(), so it makes only async-signal-safe calls.
  void RestoreInChild() const;

 private:
  SignalWatch(Program program, int descriptor) : program_(program), signals_(descriptor) {}
  void Block(const ::sigset_t& watched);
  Event EventFor(int signal);

  const Program program_;
  FileDescriptor signals_;
  int stop_signal_ = 0;
  bool blocks_ = false;  // The members below are set.
  ::sigset_t mask_before_{};
  int changed_signal_ = 0;  // SIGCHLD of a supervisor, SIGPIPE of the others.
  struct ::sigaction action_before_ {};
};

// Whether a process sent the signal (kill, sigqueue). Otherwise the kernel did, as for Ctrl-C on
// the terminal, which reaches the whole foreground group.
bool SentByAProcess(const SignalWatch::Signal& signal);

// Whether the signal asks a program to end: SIGINT, SIGTERM, SIGHUP, SIGQUIT.
bool AsksToEnd(int signal);

}  // namespace zeus
