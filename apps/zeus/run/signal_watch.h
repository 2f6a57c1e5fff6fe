#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <memory>
#include <optional>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::cli {

// Signals as events instead of interruptions: from construction to destruction those that end,
// stop or inform a process wait until they are asked for. Threads inherit that, so make it before
// any thread. One per process, one owner.
class SignalWatch {
 public:
  static Result<std::unique_ptr<SignalWatch>> Start();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  using Signal = ::signalfd_siginfo;

  // Waits for the next signal.
  Signal Next();
  // Waits for it at most that long.
  std::optional<Signal> NextWithin(Seconds patience);
  // The same, and returns nothing as soon as `descriptor` is readable.
  std::optional<Signal> NextUnless(int descriptor, Seconds patience);

  // Readable when a signal waits: for who waits for other things as well.
  int descriptor() const { return signals_.get(); }

  // Undoes everything, for a child between fork() and exec(): it begins as Zeus itself began.
  // Only async-signal-safe calls.
  void RestoreInChild() const;

 private:
  SignalWatch(const ::sigset_t& watched, int descriptor);

  FileDescriptor signals_;
  ::sigset_t mask_before_{};
  struct ::sigaction child_before_ {};
};

// Whether a process sent it to this process (kill, sigqueue). Otherwise the kernel did: the
// terminal's Ctrl-C, which reaches the whole foreground group.
bool SentByAProcess(const SignalWatch::Signal& signal);

// Whether it asks a program to end: SIGINT, SIGTERM, SIGHUP, SIGQUIT.
bool AsksToEnd(int signal);

}  // namespace zeus::cli
