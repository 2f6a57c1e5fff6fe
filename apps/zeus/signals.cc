#include "apps/zeus/signals.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace zeus::cli {
namespace {

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

}  // namespace

Signals::Signals(Program program) : program_(program) {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const bool always = program == Program::kLoad && signal != SIGHUP;
    // A blocked signal becomes pending although it is ignored.
    if (always || !IsIgnored(signal)) sigaddset(&watched_, signal);
  }
  if (program == Program::kInteractive) sigaddset(&watched_, SIGWINCH);
  pthread_sigmask(SIG_BLOCK, &watched_, &mask_before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Signals::~Signals() {
  // A second Ctrl-C that is still pending asks for what has happened already.
  const timespec no_time{};
  while (::sigtimedwait(&watched_, nullptr, &no_time) > 0) {
  }
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

Signals::Event Signals::EventFor(int signal) {
  if (signal == SIGWINCH) return Event::kResize;
  if (signal == SIGHUP && program_ == Program::kService) return Event::kReopen;
  if (stop_signal_ == 0) stop_signal_ = signal;
  return Event::kStop;
}

Signals::Event Signals::WaitUntil(TimePoint deadline, const Clock& clock) {
  while (true) {
    const Seconds left = deadline - clock.Now();
    const timespec timeout = ToTimespec(std::max(left, Seconds(0)));
    const int signal = ::sigtimedwait(&watched_, nullptr, &timeout);
    if (signal > 0) return EventFor(signal);
    if (clock.Now() >= deadline) return Event::kTime;
  }
}

int Signals::stop_signal() {
  const timespec no_time{};
  for (int signal = 1; stop_signal_ == 0 && signal > 0;) {
    signal = ::sigtimedwait(&watched_, nullptr, &no_time);
    if (signal > 0) EventFor(signal);
  }
  return stop_signal_;
}

}  // namespace zeus::cli
