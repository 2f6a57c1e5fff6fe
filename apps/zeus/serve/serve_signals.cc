#include "apps/zeus/serve/serve_signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>

#include "apps/zeus/exit_code.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kLookPeriod = 50ms;
constexpr Seconds kLastTurn = 250ms;  // For the writer of the access log.

bool IsIgnored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

timespec ToTimespec(Seconds time) {
  const double seconds = std::floor(time.count());
  return {.tv_sec = static_cast<std::time_t>(seconds),
          .tv_nsec = static_cast<long>((time.count() - seconds) * 1e9)};
}

// No destructors: they wait. And no stdio: somebody may hold its lock, and nobody may read our
// standard error.
[[noreturn]] void EndNow(const char* why) {
  const std::string sentence = fmt::format("zeus: {}\n", why);
  pollfd file{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&file, 1, 0) > 0) [[maybe_unused]]
    const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(ExitCode(ErrorCode::kUnavailable));
}

}  // namespace

ServeSignals::ServeSignals() {
  sigemptyset(&ours_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!IsIgnored(signal)) sigaddset(&ours_, signal);
  pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

ServeSignals::~ServeSignals() {
  // An impatient second Ctrl-C asks for what has happened already.
  const timespec no_time{};
  while (::sigtimedwait(&ours_, nullptr, &no_time) > 0) {
  }
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

ServeSignals::Event ServeSignals::WaitUntil(TimePoint deadline, const Clock& clock) {
  while (true) {
    const Seconds left = deadline - clock.Now();
    const timespec patience = ToTimespec(std::max(left, Seconds(0)));
    const int signal = ::sigtimedwait(&ours_, nullptr, &patience);
    if (signal == SIGHUP) return Event::kReopen;
    if (signal > 0) return Event::kStop;
    if (clock.Now() >= deadline) return Event::kTime;
  }
}

LastResort::LastResort(ServeSignals& signals, TimePoint deadline, const Clock& clock)
    : signals_(signals),
      deadline_(std::max(deadline, clock.Now() + 2 * kLookPeriod)),
      clock_(clock),
      ticker_("zeus-end", [this] { return Step(); }) {}

TimePoint LastResort::Step() {
  if (why_ != nullptr) EndNow(why_);
  if (signals_.WaitUntil(clock_.Now(), clock_) == ServeSignals::Event::kStop)
    why_ = "ended by a second signal: some requests got no answer";
  else if (clock_.Now() >= deadline_)
    why_ = "some requests did not finish in time and got no answer";
  return clock_.Now() + (why_ == nullptr ? kLookPeriod : kLastTurn);
}

}  // namespace zeus::cli
