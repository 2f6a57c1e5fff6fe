#include "apps/zeus/run/group_guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace zeus::cli {
namespace {

constexpr char kLetGo = 'x';

Error CannotWatch() {
  return {ErrorCode::kUnavailable,
          fmt::format("cannot start a process that watches the command: {}",
                      std::generic_category().message(errno))};
}

// After fork() in a program with threads: nothing but async-signal-safe calls.
[[noreturn]] void WaitAndKill(int line, pid_t group) {
  // Whoever ends Zeus' own group must not end its guardian.
  ::setpgid(0, 0);
  // The terminal and the pipes of Zeus close when it ends.
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

}  // namespace zeus::cli
