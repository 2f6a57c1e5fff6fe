#include "apps/zeus/run/rank_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/zeus/run/rank_witness.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/monitor/sharing/shared_activity_board.h"
#include "zeus/process/child.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

// Beyond what drivers may take: processes start, files are read.
constexpr Seconds kStarting{10};
// A launcher waits for a rank that has failed before it ends the others.
constexpr Seconds kFailed{1};
// The others may run for as long as they like.
constexpr Seconds kUnlimited{1e9};

// The witness, seen from the rank.
class Witness {
 public:
  // In the child this does not return.
  static Result<std::unique_ptr<Witness>> Start(const RunOptions& options);

  // Waits for a message; nullopt after the time, when the witness has died, and when a signal asks
  // this process to end.
  std::optional<Json> Await(SignalWatch& signals, const Clock& clock, Seconds timeout);
  void SayEnded(int exit_code) {
    connection_.Send({{"ended", exit_code}});
    connection_.Pump();
  }

  std::optional<int> asked_to_end() const { return asked_to_end_; }

 private:
  explicit Witness(int descriptor) : connection_(descriptor) {}

  LineConnection connection_;
  std::optional<int> asked_to_end_;
};

// The life of the child.
[[noreturn]] void BeWitness(const RunOptions& options, int descriptor) {
  ::setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  LineConnection rank(descriptor);
  const Status done = RankWitness(options, rank).Run();
  if (!done.ok()) {
    rank.Send({{"error", done.error().message}, {"code", static_cast<int>(done.error().code)}});
    rank.Pump();
  }
  ::_exit(0);
}

Result<std::unique_ptr<Witness>> Witness::Start(const RunOptions& options) {
  std::array<int, 2> pair{};
  constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  if (::socketpair(AF_UNIX, kKind, 0, pair.data()) != 0)
    return Error{ErrorCode::kUnavailable, fmt::format("socketpair: {}", std::strerror(errno))};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pair[0]);
    BeWitness(options, pair[1]);
  }
  const int reason = errno;
  ::close(pair[1]);
  std::unique_ptr<Witness> witness(new Witness(pair[0]));
  if (child < 0)
    return Error{ErrorCode::kUnavailable, fmt::format("fork: {}", std::strerror(reason))};
  return witness;
}

std::optional<Json> Witness::Await(SignalWatch& signals, const Clock& clock, Seconds timeout) {
  const TimePoint deadline = clock.Now() + timeout;
  while (true) {
    const bool alive = connection_.Pump();
    if (auto message = connection_.Next()) return message;
    const TimePoint now = clock.Now();
    if (!alive || now >= deadline) return std::nullopt;
    const auto signal = signals.NextUnless(connection_.descriptor(), deadline - now);
    if (!signal || !AsksToEnd(static_cast<int>(signal->ssi_signo))) continue;
    asked_to_end_ = static_cast<int>(signal->ssi_signo);
    return std::nullopt;
  }
}

// The error by which the witness ended, if it is one of the user's.
std::optional<Error> ErrorIn(const Json& message) {
  const auto text = GetField<std::string>(message, "error");
  const auto code = GetField<int>(message, "code");
  if (!text.ok() || !code.ok()) return std::nullopt;
  return Error{static_cast<ErrorCode>(code.value()), text.value()};
}

Result<ChildOutcome> RunCommand(const RunOptions& options, SignalWatch& signals) {
  ChildOptions child_options = options.child;
  if (std::string group = ActivityGroup::VariableOfMembers(); !group.empty())
    child_options.environment.push_back(std::move(group));
  child_options.environment.push_back(MeasuredVariable(*options.place));
  ZEUS_TRY(Child child, Child::Start(options.command, signals, child_options));
  return child.Wait();
}

}  // namespace

Result<int> RunAsRank(const RunOptions& options) {
  constexpr int kInterruptedExitCode = 128;
  const SystemClock clock;
  ZEUS_TRY(const std::unique_ptr<Witness> witness, Witness::Start(options));
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  const auto ready = witness->Await(*signals, clock, options.meter.driver_timeout + kStarting);
  if (const auto signal = witness->asked_to_end()) return kInterruptedExitCode + *signal;
  if (ready)
    if (auto error = ErrorIn(*ready)) return *std::move(error);
  if (!ready)
    log::Warning("rank {} is not measured: its witness does not answer", options.place->rank);
  ZEUS_TRY(const ChildOutcome outcome, RunCommand(options, *signals));
  witness->SayEnded(outcome.exit_code);
  const bool failed = outcome.exit_code != 0 || outcome.interrupted;
  if (!ready) return outcome.exit_code;
  const auto done = witness->Await(*signals, clock, failed ? kFailed : kUnlimited);
  if (!done || failed) return outcome.exit_code;
  const auto trouble = GetField<std::string>(*done, "done");
  if (!trouble.ok() || trouble.value().empty()) return outcome.exit_code;
  return Error{ErrorCode::kUnavailable, trouble.value()};
}

}  // namespace zeus::cli
