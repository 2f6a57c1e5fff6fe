#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "apps/zeus/run/signal_watch.h"
#include "zeus/base/result.h"

namespace zeus::cli {

struct ChildOptions {
  bool wait_all = false;          // Until every descendant has ended, not only the command.
  bool kill_with_parent = false;  // The command is killed when Zeus is.
};

// How a command ended.
struct Outcome {
  int exit_code = 0;         // 128 + signal when a signal killed it, as shells say it.
  bool interrupted = false;  // Somebody asked Zeus to end meanwhile.
};

// A running command. Standard streams, environment, directory, signal mask and dispositions are
// those that Zeus was started with. One owner.
class Child {
 public:
  // kNotFound when there is no such command, kNotSupported when it cannot be executed, kUnavailable
  // when no process can be made.
  static Result<Child> Start(const std::vector<std::string>& command, SignalWatch& signals,
                             const ChildOptions& options);

  // Waits for the end. Signals sent to Zeus are passed on; those of the terminal have reached the
  // command already, which is in the same process group. When the terminal stops both (Ctrl-Z),
  // Zeus stops too, so that the shell sees its job stop.
  Outcome Wait();

 private:
  Child(pid_t pid, SignalWatch& signals, const ChildOptions& options)
      : pid_(pid), signals_(signals), options_(options) {}

  bool Collect();  // True when what is waited for has ended.
  void Handle(const SignalWatch::Signal& signal);
  void PassOn(int signal) const;
  void StopIfAsked();

  pid_t pid_;
  SignalWatch& signals_;
  ChildOptions options_;
  Outcome outcome_;
  bool ended_ = false;    // The command itself.
  bool stopped_ = false;  // The command itself, by a signal.
  bool asked_to_stop_ = false;
};

}  // namespace zeus::cli
