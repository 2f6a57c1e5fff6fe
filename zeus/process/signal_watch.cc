#include "zeus/process/signal_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <system_error>

namespace zeus {
namespace {

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
// SIGPIPE and SIGXFSZ are watched only so that they do not kill this process: a closed pipe and a
// full file become errors of write().
constexpr std::array kOthers = {SIGCHLD, SIGCONT, SIGTSTP,  SIGTTIN, SIGTTOU, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGWINCH, SIGPIPE, SIGXFSZ};

::sigset_t Watched() {
  ::sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kEnding) ::sigaddset(&set, signal);
  for (const int signal : kOthers) ::sigaddset(&set, signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ::sigaddset(&set, signal);
  return set;
}

Result<int> OpenSignals(const ::sigset_t& watched) {
  const int descriptor = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor >= 0) return descriptor;
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot watch signals: {}", std::generic_category().message(errno))};
}

}  // namespace

Result<std::unique_ptr<SignalWatch>> SignalWatch::Start() {
  const ::sigset_t watched = Watched();
  ZEUS_TRY(const int descriptor, OpenSignals(watched));
  std::unique_ptr<SignalWatch> watch(new SignalWatch(descriptor));
  watch->Block(watched);
  return watch;
}

Result<std::unique_ptr<SignalWatch>> SignalWatch::WatchNothing() {
  ::sigset_t none;
  ::sigemptyset(&none);
  ZEUS_TRY(const int descriptor, OpenSignals(none));
  return std::unique_ptr<SignalWatch>(new SignalWatch(descriptor));
}

void SignalWatch::Block(const ::sigset_t& watched) {
  blocks_ = true;
  ::pthread_sigmask(SIG_BLOCK, &watched, &mask_before_);
  // If the parent ignored SIGCHLD, the kernel would not report how a child ended.
  struct ::sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, &child_before_);
}

SignalWatch::~SignalWatch() {
  // Signals that arrived after the last read were meant for a command that has ended.
  while (NextWithin(Seconds(0))) continue;
  RestoreInChild();
}

void SignalWatch::RestoreInChild() const {
  if (!blocks_) return;
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

SignalWatch::Signal SignalWatch::Next() {
  constexpr Seconds kLong(3600);
  for (;;)
    if (const auto signal = NextWithin(kLong)) return *signal;
}

std::optional<SignalWatch::Signal> SignalWatch::NextWithin(Seconds timeout) {
  return NextUnless(-1, timeout);  // poll() ignores negative descriptors.
}

std::optional<SignalWatch::Signal> SignalWatch::NextUnless(int descriptor, Seconds timeout) {
  std::array<::pollfd, 2> ready{{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = descriptor, .events = POLLIN, .revents = 0}}};
  constexpr double kMostMilliseconds = 1e9;
  const double milliseconds = std::clamp(timeout.count() * 1e3, 0.0, kMostMilliseconds);
  ::poll(ready.data(), ready.size(), static_cast<int>(std::ceil(milliseconds)));
  Signal signal{};
  if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return signal;
}

bool SentByAProcess(const SignalWatch::Signal& signal) { return signal.ssi_code <= 0; }

bool AsksToEnd(int signal) { return std::ranges::find(kEnding, signal) != kEnding.end(); }

}  // namespace zeus
