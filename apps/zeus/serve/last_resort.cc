#include "apps/zeus/serve/last_resort.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "apps/zeus/exit_code.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kPollPeriod = 50ms;
// An idle server ends within milliseconds, but may have to wait for a processor on a busy machine.
constexpr Seconds kLeastTimeout = 1s;
constexpr Seconds kLogFlushTime = 250ms;  // Lets the writer of the access log finish.

// Runs no destructors, because they wait, and uses no stdio, because another thread may hold its
// lock and the reader of standard error may not read.
[[noreturn]] void EndNow(const char* why) {
  const std::string sentence = fmt::format("zeus: {}\n", why);
  pollfd file{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&file, 1, 0) > 0) [[maybe_unused]]
    const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(ExitCode(ErrorCode::kUnavailable));
}

}  // namespace

LastResort::LastResort(Signals& signals, const Clock& clock)
    : signals_(signals), clock_(clock), ticker_("zeus-end", [this] { return Step(); }) {}

void LastResort::Arm(TimePoint deadline) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = std::max(deadline, clock_.Now() + kLeastTimeout);
  }
  ticker_.Wake();
}

std::optional<TimePoint> LastResort::deadline() const {
  const std::lock_guard lock(mutex_);
  return deadline_;
}

TimePoint LastResort::Step() {
  const std::optional<TimePoint> end = deadline();
  if (!end) return Ticker::kWhenWoken;
  if (why_ != nullptr) EndNow(why_);
  if (signals_.WaitUntil(clock_.Now(), clock_) == Signals::Event::kStop)
    why_ = "ended by a second signal: some requests got no answer";
  else if (clock_.Now() >= *end)
    why_ = "some requests did not finish in time and got no answer";
  return clock_.Now() + (why_ == nullptr ? kPollPeriod : kLogFlushTime);
}

}  // namespace zeus::cli
