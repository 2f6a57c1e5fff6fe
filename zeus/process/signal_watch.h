#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <memory>
#include <optional>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// Turns signals into events: while an object lives, signals that end, stop or inform a process wait
// until Next() or a sibling reads them. Threads inherit the signal mask, so make the object before
// the first thread. One per process, one owner.
class SignalWatch {
 public:
  static Result<std::unique_ptr<SignalWatch>> Start();
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

  // Readable while a signal waits: for poll() together with other descriptors.
  int descriptor() const { return signals_.get(); }

  // Restores the mask and the disposition that this process was started with. For a child between
  // fork() and exec(), so it makes only async-signal-safe calls.
  void RestoreInChild() const;

 private:
  explicit SignalWatch(int descriptor) : signals_(descriptor) {}
  void Block(const ::sigset_t& watched);

  FileDescriptor signals_;
  bool blocks_ = false;  // The members below are set.
  ::sigset_t mask_before_{};
  struct ::sigaction child_before_ {};
};

// Whether a process sent the signal (kill, sigqueue). Otherwise the kernel did, as for Ctrl-C on
// the terminal, which reaches the whole foreground group.
bool SentByAProcess(const SignalWatch::Signal& signal);

// Whether the signal asks a program to end: SIGINT, SIGTERM, SIGHUP, SIGQUIT.
bool AsksToEnd(int signal);

}  // namespace zeus
