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
  sigemptyset(&ours_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!IsIgnored(signal)) sigaddset(&ours_, signal);
  if (program == Program::kOfTerminal) sigaddset(&ours_, SIGWINCH);
  pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Signals::~Signals() {
  // An impatient second Ctrl-C asks for what has happened already.
  const timespec no_time{};
  while (::sigtimedwait(&ours_, nullptr, &no_time) > 0) {
  }
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Signals::Event Signals::WaitUntil(TimePoint deadline, const Clock& clock) {
  while (true) {
    const Seconds left = deadline - clock.Now();
    const timespec patience = ToTimespec(std::max(left, Seconds(0)));
    const int signal = ::sigtimedwait(&ours_, nullptr, &patience);
    if (signal == SIGWINCH) return Event::kResize;
    if (signal == SIGHUP && program_ == Program::kService) return Event::kReopen;
    if (signal > 0) return Event::kStop;
    if (clock.Now() >= deadline) return Event::kTime;
  }
}

}  // namespace zeus::cli
