#include "zeus/process/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/spawn.h"

namespace zeus {
namespace {

constexpr std::size_t kMostOutput = std::size_t{64} << 10;
constexpr Seconds kGrace{1};  // For output that comes after the end of the command.

// Reads what is there. Returns false at the end of the output.
bool ReadSome(int descriptor, std::string& output) {
  std::array<char, 4096> part{};
  const ssize_t got = ::read(descriptor, part.data(), part.size());
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  const std::size_t room = kMostOutput - output.size();
  output.append(part.data(), std::min(room, static_cast<std::size_t>(got)));
  return got > 0;
}

int Milliseconds(Seconds left) {
  return static_cast<int>(std::clamp(std::ceil(left.count() * 1000), 0.0, 1e9));
}

// Collects output until it ends or the time is over; where `process` is given, until that process
// ends. Returns whether it was the time that ended it.
bool Collect(int descriptor, int process, TimePoint until, std::string& output) {
  const SystemClock clock;
  bool open = true;
  for (;;) {
    const Seconds left = until - clock.Now();
    if (left <= Seconds(0)) return true;
    std::array<pollfd, 2> watched{pollfd{open ? descriptor : -1, POLLIN, 0},
                                  pollfd{process, POLLIN, 0}};
    if (::poll(watched.data(), watched.size(), Milliseconds(left)) < 0 && errno != EINTR)
      return true;
    if (watched[0].revents != 0) open = ReadSome(descriptor, output);
    if (watched[1].revents != 0 || (process < 0 && !open)) return false;
  }
}

}  // namespace

Result<CommandOutcome> RunCommand(const std::vector<std::string>& command, Seconds timeout) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return FileError("pipe", errno);
  const FileDescriptor reading(ends[0]);
  (void)::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  CommandOutcome outcome;
  pid_t process = 0;
  {
    const FileDescriptor writing(ends[1]);
    const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing.valid()) return FileError("/dev/null", errno);
    ZEUS_TRY(process, Spawn({.command = command,
                             .input = nothing.get(),
                             .output = writing.get(),
                             .error = writing.get(),
                             .own_process_group = true}));
  }
  const SystemClock clock;
  const FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  const int watch_failed = pidfd.valid() ? 0 : errno;
  outcome.timed_out = watch_failed == 0 &&
                      Collect(reading.get(), pidfd.get(), clock.Now() + timeout, outcome.output);
  if (outcome.timed_out || watch_failed != 0) ::kill(-process, SIGKILL);
  outcome.status = WaitForEnd(process);
  if (watch_failed != 0) return FileError("pidfd", watch_failed);
  // Programs that it started may keep the pipe open.
  (void)Collect(reading.get(), -1, clock.Now() + kGrace, outcome.output);
  return outcome;
}

}  // namespace zeus
