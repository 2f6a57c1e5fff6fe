#include "zeus/process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/log.h"
#include "zeus/base/process.h"

namespace zeus {
namespace {

constexpr int kSignalExitCode = 128;
constexpr int kNotStarted = 127;  // Not visible to callers: the parent reads the reason.
constexpr int kNotExecutable = 126;
constexpr int kNoSuchCommand = 127;
constexpr int kStatusLost = 255;

constexpr char kLetGo = 'x';  // Tells a guardian to end without killing the group.

Error CannotStart(const char* what) {
  return {ErrorCode::kUnavailable, fmt::format("cannot start a process: {}: {}", what,
                                               std::generic_category().message(errno))};
}

bool ExitCodesAreLost() {
  struct ::sigaction action {};
  ::sigaction(SIGCHLD, nullptr, &action);
  return action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0;
}

// The form that exec() requires; it does not write to the words.
std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The present environment, where `added` takes the place of variables of the same name.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& added) {
  const auto replaced = [&added](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    return std::ranges::any_of(added, [&](const auto& one) { return one.starts_with(name); });
  };
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!replaced(*entry)) environment.emplace_back(*entry);
  environment.insert(environment.end(), added.begin(), added.end());
  return environment;
}

struct Birth {
  char* const* arguments;
  char* const* environment;
  const ChildOptions& options;
  const SignalWatch& signals;
  int report;  // Pipe that gets the reason when exec() fails.
  pid_t parent;
};
// Runs between fork() and exec(), so it makes only async-signal-safe calls: another thread may have
// held any lock during the fork. Does not return.
[[noreturn]] void BecomeCommand(const Birth& birth) {
  if (birth.options.kill_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != birth.parent) ::_exit(kNotStarted);  // The parent died before prctl().
  }
  if (birth.options.own_group) {
    ::setpgid(0, 0);
    // A process that reads from a terminal in the background is stopped for ever.
    if (::isatty(STDIN_FILENO) == 1) {
      if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0)
        ::dup2(nothing, STDIN_FILENO);
    }
  }
  if (const auto& streams = birth.options.streams) {
    ::dup2(streams->output, STDOUT_FILENO);
    ::dup2(streams->error, STDERR_FILENO);
  }
  birth.signals.RestoreInChild();
  ::execvpe(birth.arguments[0], birth.arguments, birth.environment);
  const int reason = errno;
  // The pipe closes on exec, so the parent reads a reason or nothing.
  [[maybe_unused]] const auto written = ::write(birth.report, &reason, sizeof reason);
  ::_exit(kNotStarted);
}

// The reason why exec failed; 0 when it did not.
int ReadReason(int report) {
  int reason = 0;
  ssize_t got = 0;
  do {
    got = ::read(report, &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  return got == sizeof reason ? reason : 0;
}

// The direct children of this process. After the command has ended, these are its orphans.
std::vector<pid_t> RemainingChildren() {
  std::ifstream list(fmt::format("/proc/self/task/{}/children", ::getpid()));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

Error CannotWatch() {
  return {ErrorCode::kUnavailable,
          fmt::format("cannot start a process that watches the command: {}",
                      std::generic_category().message(errno))};
}

// Runs after fork() in a program with threads, so it makes only async-signal-safe calls.
[[noreturn]] void WaitAndKill(int line, pid_t group) {
  // A signal to the group of the parent must not end the guardian.
  ::setpgid(0, 0);
  // The guardian must not keep the terminal and the pipes of the parent open.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  char word = 0;
  ssize_t got = 0;
  do {
    got = ::read(line, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace

std::optional<int> ExitCodeOfUnstarted(const Error& error) {
  if (error.code == ErrorCode::kNotFound) return kNoSuchCommand;
  if (error.code == ErrorCode::kNotSupported) return kNotExecutable;
  return std::nullopt;
}

Result<Child> Child::Start(const std::vector<std::string>& command, SignalWatch& signals,
                           const ChildOptions& options) {
  if (ExitCodesAreLost())
    return Error{ErrorCode::kConflict,
                 "this program ignores SIGCHLD, so the system drops the exit codes of commands: "
                 "set it to SIG_DFL before a command is started"};
  const std::vector<std::string> environment = EnvironmentWith(options.environment);
  const std::vector<char*> arguments = Pointers(command);
  const std::vector<char*> variables = Pointers(environment);
  if (options.wait_all && ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return CannotStart("adopt descendants");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return CannotStart("pipe");
  const FileDescriptor read_end(ends[0]);
  std::optional<FileDescriptor> write_end(ends[1]);

  const Birth birth{arguments.data(), variables.data(), options, signals, ends[1], ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return CannotStart("fork");
  if (pid == 0) BecomeCommand(birth);
  if (options.own_group)
    ::setpgid(pid, pid);  // Both processes call it, so that signals find the group.
  write_end.reset();
  if (const int reason = ReadReason(read_end.get()); reason != 0) {
    ::waitpid(pid, nullptr, 0);
    return CannotExecute(command.front(), reason);
  }
  return Child(pid, signals, options);
}

ChildOutcome Child::Wait() {
  while (!Collect()) {
    StopIfAsked();
    Handle(signals_.Next());
  }
  return outcome_;
}

std::optional<ChildOutcome> Child::WaitFor(Seconds timeout) {
  if (!Collect()) {
    StopIfAsked();
    if (const auto signal = signals_.NextWithin(timeout)) Handle(*signal);
  }
  // Also when the command has ended: a signal that came before that asked this process to end.
  while (const auto signal = signals_.NextWithin(Seconds(0))) Handle(*signal);
  return Collect() ? std::optional(outcome_) : std::nullopt;
}

bool Child::Collect() {
  const pid_t whom = options_.wait_all ? -1 : pid_;
  if (ended_ && !options_.wait_all) return true;
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(whom, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
    if (pid != pid_ || ended_) continue;
    stopped_ = WIFSTOPPED(status);
    if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome_.exit_code = kSignalExitCode + WTERMSIG(status);
    ended_ = WIFEXITED(status) || WIFSIGNALED(status);
    if (ended_ && !options_.wait_all) return true;
  }
  if (pid >= 0 || errno != ECHILD) return false;
  if (!ended_) {
    // Other code of this program has waited for all of its children.
    log::Failure("the exit code of the command is lost, which counts as exit code {}", kStatusLost);
    outcome_.exit_code = kStatusLost;
    ended_ = true;
  }
  return true;
}

void Child::Handle(const SignalWatch::Signal& signal) {
  const int number = static_cast<int>(signal.ssi_signo);
  if (number == SIGCHLD || number == SIGPIPE || number == SIGXFSZ) return;
  if (AsksToEnd(number)) {
    outcome_.interrupted = true;
    outcome_.signal = number;
  }
  if (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU) asked_to_stop_ = true;
  if (number == SIGCONT) asked_to_stop_ = false;
  if (SentByAProcess(signal) || options_.own_group) PassOn(number);
}

void Child::PassOn(int signal) const {
  if (!ended_ || options_.own_group) {
    ::kill(options_.own_group ? -pid_ : pid_, signal);
    return;
  }
  for (const pid_t child : RemainingChildren()) ::kill(child, signal);
}

void Child::SendToGroup(int signal) const { ::kill(-pid_, signal); }

bool Child::GroupIsEmpty() const { return ::kill(-pid_, 0) != 0 && errno == ESRCH; }

void Child::StopIfAsked() {
  if (!stopped_ || !asked_to_stop_) return;
  asked_to_stop_ = false;
  // Returns when this process is continued. SIGCONT is then passed on to the command, which a shell
  // has continued as well.
  ::kill(::getpid(), SIGSTOP);
}

Result<std::unique_ptr<GroupGuardian>> GroupGuardian::Watch(pid_t group) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return CannotWatch();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[1]);
    WaitAndKill(ends[0], group);
  }
  ::close(ends[0]);
  if (pid < 0) {
    ::close(ends[1]);
    return CannotWatch();
  }
  return std::unique_ptr<GroupGuardian>(new GroupGuardian(pid, ends[1]));
}

GroupGuardian::~GroupGuardian() {
  [[maybe_unused]] const auto written = ::write(line_.get(), &kLetGo, 1);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace zeus
