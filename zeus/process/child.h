#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/process/signal_watch.h"

namespace zeus {

// Descriptors that replace this process' own standard output and standard error in a child.
struct ChildStreams {
  int output;
  int error;
};

struct ChildOptions {
  bool wait_all = false;          // Wait until every descendant has ended, not only the command.
  bool kill_with_parent = false;  // The kernel kills the command when this process dies.
  // The command gets a process group of its own, and every signal goes to the whole group:
  // everything that the command starts ends with it. If standard input is a terminal, the command
  // reads an empty input instead.
  bool own_group = false;
  std::optional<ChildStreams> streams{};
  std::vector<std::string> environment{};  // "NAME=value", added to this process' environment.
};

// How a command ended.
struct ChildOutcome {
  int exit_code = 0;         // 128 + signal when a signal killed it, as shells report it.
  bool interrupted = false;  // This process was asked to end meanwhile …
  int signal = 0;            // … by this signal.
};

// The exit code that a shell returns for a command that Child::Start() could not start: 127 when it
// does not exist, 126 when it cannot be executed. nullopt for other errors.
std::optional<int> ExitCodeOfUnstarted(const Error& error);

// A running command. It inherits the working directory, the environment, the standard streams
// (unless given), the signal mask and the signal dispositions that this process was started with.
// One owner.
class Child {
 public:
  // kNotFound when the command does not exist, kNotSupported when it cannot be executed,
  // kUnavailable when the system cannot create a process.
  static Result<Child> Start(const std::vector<std::string>& command, SignalWatch& signals,
                             const ChildOptions& options);

  // Waits until the command has ended. Signals sent to this process are passed on; those of the
  // terminal have reached the command already, unless it has a group of its own. When the terminal
  // stops both (Ctrl-Z), this process stops as well, so that the shell sees its job stop.
  ChildOutcome Wait();

  // The same for callers that have other things to do: handles the signals that have arrived, and
  // waits at most `timeout` for one more. Returns nullopt while the command runs.
  std::optional<ChildOutcome> WaitFor(Seconds timeout);

  // Whether a signal asked this process to end.
  bool interrupted() const { return outcome_.interrupted; }

  void Send(int signal) const { PassOn(signal); }
  pid_t pid() const { return pid_; }
  // Members of the command's own group may outlive the command itself.
  void SendToGroup(int signal) const;
  bool GroupIsEmpty() const;

 private:
  Child(pid_t pid, SignalWatch& signals, const ChildOptions& options)
      : pid_(pid), signals_(signals), options_(options) {}

  bool Collect();  // Returns true when everything that is waited for has ended.
  void Handle(const SignalWatch::Signal& signal);
  void PassOn(int signal) const;
  void StopIfAsked();

  pid_t pid_;
  SignalWatch& signals_;
  ChildOptions options_;
  ChildOutcome outcome_;
  bool ended_ = false;    // The command itself has ended.
  bool stopped_ = false;  // A signal has stopped the command itself.
  bool asked_to_stop_ = false;
};

// A process that kills a process group when this process dies without saying so: after a SIGKILL of
// Zeus no part of the command keeps running unobserved. One owner.
class GroupGuardian {
 public:
  // kUnavailable when the system cannot create a process.
  static Result<std::unique_ptr<GroupGuardian>> Watch(pid_t group);
  // Ends the guardian and leaves the group alone.
  ~GroupGuardian();
  GroupGuardian(const GroupGuardian&) = delete;
  GroupGuardian& operator=(const GroupGuardian&) = delete;

 private:
  GroupGuardian(pid_t pid, int line) : pid_(pid), line_(line) {}

  pid_t pid_;
  FileDescriptor line_;  // The kernel closes it when this process ends, however it ends.
};

}  // namespace zeus
