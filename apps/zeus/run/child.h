#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/run/signal_watch.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Descriptors that take the place of Zeus' own.
struct ChildStreams {
  int output;
  int error;
};

struct ChildOptions {
  bool wait_all = false;          // Until every descendant has ended, not only the command.
  bool kill_with_parent = false;  // The command is killed when Zeus is.
  // In a process group of its own, to which every signal goes: whatever the command starts ends
  // with it. Where Zeus' input is a terminal, the command's is empty.
  bool own_group = false;
  std::optional<ChildStreams> streams{};
  std::vector<std::string> environment{};  // "NAME=value", beside what Zeus was started with.
};

// How a command ended.
struct Outcome {
  int exit_code = 0;         // 128 + signal when a signal killed it, as shells say it.
  bool interrupted = false;  // Somebody asked Zeus to end meanwhile …
  int signal = 0;            // … by this.
};

// The exit code, as a shell has it, of a command that could not be started: 127 when there is none,
// 126 when it cannot be executed. The sentence goes to standard error. Other errors stay errors.
Result<int> CommandNotStarted(Error error);

// A running command. Standard streams and environment (unless given), directory, signal mask and
// dispositions are those that Zeus was started with. One owner.
class Child {
 public:
  // kNotFound when there is no such command, kNotSupported when it cannot be executed, kUnavailable
  // when no process can be made.
  static Result<Child> Start(const std::vector<std::string>& command, SignalWatch& signals,
                             const ChildOptions& options);

  // Waits for the end. Signals sent to Zeus are passed on; those of the terminal have reached the
  // command already, unless it is in a group of its own. When the terminal stops both (Ctrl-Z),
  // Zeus stops too, so that the shell sees its job stop.
  Outcome Wait();

  // The same for callers that have other things to do: handles what has arrived, and one signal
  // more if it arrives in time. nullopt while the command runs.
  std::optional<Outcome> WaitFor(Seconds patience);

  // Somebody asked Zeus to end.
  bool interrupted() const { return outcome_.interrupted; }

  void Send(int signal) const { PassOn(signal); }
  pid_t pid() const { return pid_; }
  // What is left of the command's own group, after its end.
  void SendToGroup(int signal) const;
  bool GroupIsEmpty() const;

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
