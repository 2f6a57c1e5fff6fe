#include "zeus/process/signal_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <system_error>

namespace zeus {
namespace {

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
// SIGPIPE and SIGXFSZ are watched only so that they do not kill this process: a closed pipe and a
// full file become errors of write().
constexpr std::array kOthers = {SIGCHLD, SIGCONT, SIGTSTP,  SIGTTIN, SIGTTOU, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGWINCH, SIGPIPE, SIGXFSZ};

bool IsIgnored(int signal) {
  struct ::sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

::sigset_t WatchedByASupervisor() {
  ::sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kEnding) ::sigaddset(&set, signal);
  for (const int signal : kOthers) ::sigaddset(&set, signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ::sigaddset(&set, signal);
  return set;
}

::sigset_t WatchedByAMainLoop(SignalWatch::Program program) {
  ::sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const bool always = program == SignalWatch::Program::kLoad && signal != SIGHUP;
    // A blocked signal becomes pending although it is ignored.
    if (always || !IsIgnored(signal)) ::sigaddset(&set, signal);
  }
  if (program == SignalWatch::Program::kInteractive) ::sigaddset(&set, SIGWINCH);
  return set;
}

::timespec ToTimespec(Seconds time) {
  constexpr Seconds kLongest(1e6);
  const double total = std::clamp(time, Seconds(0), kLongest).count();
  const double seconds = std::floor(total);
  return {.tv_sec = static_cast<std::time_t>(seconds),
          .tv_nsec = static_cast<long>((total - seconds) * 1e9)};
}

Result<int> OpenSignals(const ::sigset_t& watched) {
  const int descriptor = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor >= 0) return descriptor;
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot watch signals: {}", std::generic_category().message(errno))};
}

}  // namespace

Result<std::unique_ptr<SignalWatch>> SignalWatch::Start(Program program) {
  const ::sigset_t watched =
      program == Program::kSupervisor ? WatchedByASupervisor() : WatchedByAMainLoop(program);
  ZEUS_TRY(const int descriptor, OpenSignals(watched));
  std::unique_ptr<SignalWatch> watch(new SignalWatch(program, descriptor));
  watch->Block(watched);
  return watch;
}

Result<std::unique_ptr<SignalWatch>> SignalWatch::WatchNothing() {
  ::sigset_t none;
  ::sigemptyset(&none);
  ZEUS_TRY(const int descriptor, OpenSignals(none));
  return std::unique_ptr<SignalWatch>(new SignalWatch(Program::kSupervisor, descriptor));
}

void SignalWatch::Block(const ::sigset_t& watched) {
  blocks_ = true;
  ::pthread_sigmask(SIG_BLOCK, &watched, &mask_before_);
  // If the parent ignored SIGCHLD, the kernel would not report how a child ended.
  const bool supervises = program_ == Program::kSupervisor;
  changed_signal_ = supervises ? SIGCHLD : SIGPIPE;
  struct ::sigaction action {};
  action.sa_handler = supervises ? SIG_DFL : SIG_IGN;
  ::sigaction(changed_signal_, &action, &action_before_);
}

SignalWatch::~SignalWatch() {
  // Signals that arrived after the last read were meant for a command or a loop that has ended.
  while (NextWithin(Seconds(0))) continue;
  RestoreInChild();
}

void SignalWatch::RestoreInChild() const {
  if (!blocks_) return;
  ::sigaction(changed_signal_, &action_before_, nullptr);
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
  const ::timespec wait = ToTimespec(timeout);
  ::ppoll(ready.data(), ready.size(), &wait, nullptr);
  Signal signal{};
  if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return signal;
}

SignalWatch::Event SignalWatch::EventFor(int signal) {
  if (signal == SIGWINCH) return Event::kResize;
  if (signal == SIGHUP && program_ == Program::kService) return Event::kReopen;
  if (stop_signal_ == 0) stop_signal_ = signal;
  return Event::kStop;
}

SignalWatch::Event SignalWatch::WaitUntil(TimePoint deadline, const Clock& clock) {
  for (;;) {
    if (const auto signal = NextWithin(deadline - clock.Now()))
      return EventFor(static_cast<int>(signal->ssi_signo));
    if (clock.Now() >= deadline) return Event::kTime;
  }
}

int SignalWatch::stop_signal() {
  while (stop_signal_ == 0) {
    const auto signal = NextWithin(Seconds(0));
    if (!signal) break;
    EventFor(static_cast<int>(signal->ssi_signo));
  }
  return stop_signal_;
}

bool SentByAProcess(const SignalWatch::Signal& signal) { return signal.ssi_code <= 0; }

bool AsksToEnd(int signal) { return std::ranges::find(kEnding, signal) != kEnding.end(); }

}  // namespace zeus
