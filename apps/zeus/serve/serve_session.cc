#include "apps/zeus/serve/serve_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/base/version.h"
#include "zeus/export/prometheus.h"
#include "zeus/http/access_log.h"
#include "zeus/http/server.h"
#include "zeus/http/tokens.h"
#include "zeus/http/url.h"
#include "zeus/job/local_job_service.h"
#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/process/signal_watch.h"
#include "zeus/server/api.h"
#include "zeus/store/open_repository.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kExpiryPeriod = 5s;
constexpr Seconds kRefreshPeriod = 5s;
constexpr Seconds kOwnerPeriod = 500ms;  // How often the owner is looked for.
constexpr Seconds kLongTime = std::chrono::hours(24 * 365);
constexpr std::size_t kLargestSchedule = std::size_t{64} << 20;

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

http::ServerOptions HttpOptions(const ServeOptions& options) {
  const std::size_t connections = options.max_connections.value_or(http::ConnectionsByOpenFiles());
  // One address never has all connections, unless that is asked for.
  const std::size_t half = std::max<std::size_t>(1, connections / 2);
  http::ServerOptions server{
      .listen = options.listen,
      .limits = {.body = options.max_body,
                 .bodies = options.body_memory,
                 .connections = connections,
                 .per_address = options.max_connections_per_address.value_or(half),
                 .workers = static_cast<int>(options.workers),
                 .header_time = Seconds(options.header_timeout),
                 .body_time = Seconds(3 * options.header_timeout),
                 .idle_time = Seconds(options.idle_timeout),
                 .request_time = Seconds(options.request_timeout)}};
  if (!options.files.tls_certificate.empty())
    server.tls =
        http::TlsFiles{.certificate = options.files.tls_certificate, .key = options.files.tls_key};
  return server;
}

// Returns null when there are no tokens: every caller may do everything then.
Result<std::unique_ptr<http::TokenFile>> LoadTokens(const ServeOptions& options) {
  const bool remote = !http::IsLocal(options.listen);
  if (options.tokens.empty()) {
    if (!options.insecure && remote)
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} can be reached from other machines: give --tokens, or --insecure "
                      "to serve everybody",
                      Quote(options.listen))};
    if (remote)
      log::Warning(
          "everybody who can reach {} may read, change and delete everything: there are "
          "no tokens (--insecure)",
          Printable(options.listen));
    return std::unique_ptr<http::TokenFile>();
  }
  if (remote && options.files.tls_certificate.empty()) {
    if (!options.plain_http)
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} can be reached from other machines, and without TLS whoever is on the "
                      "way can read their tokens: give --tls-cert and --tls-key, listen on "
                      "127.0.0.1 behind a proxy, or say --plain-http",
                      Quote(options.listen))};
    log::Warning(
        "tokens travel to {} in the clear: whoever is on the way can read and use them "
        "(--plain-http); --tls-cert and --tls-key protect them",
        Printable(options.listen));
  }
  return http::TokenFile::Open(options.tokens);
}

// The names by which a server that only this machine reaches may be called.
http::OriginGuard::Options OriginOptions(const ServeOptions& options) {
  // A malformed address is an error of Server::Start(), and a Unix socket has no name to check.
  const auto address = http::ParseListenAddress(options.listen);
  const bool tcp = address.ok() && !address.value().is_unix();
  return {.local = tcp && http::IsLocal(options.listen),
          .listen_host = tcp ? options.listen : "",
          .hosts = options.hosts};
}

Result<std::vector<pipeline::RankClocks>> LoadSchedule(const std::string& file) {
  if (file.empty()) return std::vector<pipeline::RankClocks>();
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestSchedule));
  auto schedule = pipeline::ParseReferenceSchedule(text);
  if (!schedule.ok()) return std::move(schedule).error().While(Printable(file));
  return schedule;
}

Result<server::Usage> CountUsage(Store& store, const std::string& name_space) {
  ZEUS_TRY(const JobCounts jobs, store.jobs->Count(name_space));
  ZEUS_TRY(const std::int64_t plans, store.plans->Count(name_space));
  return server::Usage{.jobs = jobs.jobs, .trials = jobs.trials, .plans = plans};
}

// The services for pipelines.
struct Planning {
  LocalPlanService plans;
  PipelineSessions sessions;

  Planning(Store& store, const Clock& clock, const ServeOptions& options,
           std::vector<pipeline::RankClocks> schedule)
      : plans(*store.plans, clock,
              {.solving = {.solves_at_once = static_cast<int>(options.solves)},
               .most_instructions = static_cast<int>(options.max_instructions)}),
        sessions(*store.sessions, plans, clock,
                 {.schedule = std::move(schedule),
                  .forgotten_after = Seconds(options.session_timeout)}) {}
};

// Expires trials whose runs died, and deletes unused pipelines, every few seconds.
class Expiry {
 public:
  Expiry(LocalJobService& service, PipelineSessions& sessions, server::ServerMetrics& metrics,
         const Clock& clock)
      : service_(service),
        sessions_(sessions),
        metrics_(metrics),
        clock_(clock),
        ticker_("zeus-expiry", [this] { return Step(); }) {}

 private:
  TimePoint Step() {
    const Result<int> expired = service_.ExpireOverdueTrials();
    if (expired.ok())
      metrics_.CountExpired(expired.value());
    else
      log::Warning("looking for dead runs failed: {}", expired.error().message);
    if (const Result<int> forgotten = sessions_.DeleteUnused(); !forgotten.ok())
      log::Warning("forgetting old pipelines failed: {}", forgotten.error().message);
    return clock_.Now() + kExpiryPeriod;
  }

  LocalJobService& service_;
  PipelineSessions& sessions_;
  server::ServerMetrics& metrics_;
  const Clock& clock_;
  Ticker ticker_;
};

// Reads tokens, certificate and key again when their files have changed. Files that cannot be used
// are warned about once, and the old content stays in use.
class SecretsRefresh {
 public:
  SecretsRefresh(http::TokenFile* tokens, http::Server& server)
      : tokens_(tokens), server_(server) {}

  void Refresh() {
    if (tokens_ != nullptr) Report("tokens", tokens_->Refresh(), token_complaint_);
    Report("certificate and key", server_.RefreshTls(), tls_complaint_);
  }

 private:
  static void Report(const char* what, const Result<bool>& read, std::string& complaint) {
    if (!read.ok() && read.error().message != complaint) {
      complaint = read.error().message;
      log::Warning("the {} of before stay in use: {}", what, complaint);
    } else if (read.ok() && read.value()) {
      complaint.clear();
      log::Info("read the {} again", what);
    }
  }

  http::TokenFile* const tokens_;
  http::Server& server_;
  std::string token_complaint_{};
  std::string tls_complaint_{};
};

// --- the end of a server that hangs ---

constexpr Seconds kCheckPeriod = 50ms;
// An idle server ends within milliseconds, but on a busy machine it has to wait for a processor.
constexpr Seconds kLeastTimeout = 1s;
constexpr Seconds kLogFlushTime = 250ms;  // The writer of the access log gets this much at the end.

// Runs no destructors, since they wait, and avoids stdio: another thread may hold its lock, and a
// stalled reader of standard error would block us.
[[noreturn]] void EndNow(const char* why) {
  const std::string sentence = fmt::format("zeus: {}\n", why);
  pollfd file{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&file, 1, 0) > 0) [[maybe_unused]]
    const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(ExitCode(ErrorCode::kUnavailable));
}

// Once armed, ends the process with exit code 6 at the next signal or at a deadline, wherever it
// hangs, unless it is destroyed before that: workers cannot be joined while their database does not
// answer. Committed changes stay; only answers are lost. Its thread runs from the beginning,
// because the system may have none left at the end.
class LastResort {
 public:
  // Throws std::system_error when the system has no thread for it.
  LastResort(SignalWatch& signals, const Clock& clock);

  // Handles the signals from now on. The deadline is at least a second away.
  void Arm(TimePoint deadline);

 private:
  TimePoint Step();
  std::optional<TimePoint> deadline() const;

  SignalWatch& signals_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::optional<TimePoint> deadline_{};  // Guarded by mutex_. nullopt: not armed.
  const char* reason_ = nullptr;         // Set when the process is about to end.
  Ticker ticker_;
};

LastResort::LastResort(SignalWatch& signals, const Clock& clock)
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
  if (reason_ != nullptr) EndNow(reason_);
  if (signals_.WaitUntil(clock_.Now(), clock_) == SignalWatch::Event::kStop)
    reason_ = "ended by a second signal: some requests got no answer";
  else if (clock_.Now() >= *end)
    reason_ = "some requests did not finish in time and got no answer";
  return clock_.Now() + (reason_ == nullptr ? kCheckPeriod : kLogFlushTime);
}

using Wait = SignalWatch::Event;

// The objects that live to the very end, in the order of their construction: the last resort guards
// everything that is constructed after it.
struct Frame {
  std::unique_ptr<http::TokenFile> tokens{};
  std::unique_ptr<http::AccessLog> log{};
  std::unique_ptr<SignalWatch> signals{};
  std::optional<LastResort> last_resort{};
};

// Whether the process to which the server belongs has ended, of which we were a child. The death
// signal of prctl() would come at the end of the thread that started us, and a pipe would stay
// open in every process that the owner has forked.
bool OwnerHasEnded(const ServeOptions& options) {
  return options.owner && static_cast<std::uint64_t>(::getppid()) != *options.owner;
}

// Returns the exit code, unless the last resort ends the process first.
Result<int> ServeUntilSignal(http::Server& server, LocalPlanService& plans, Frame& frame,
                             const Clock& clock, const ServeOptions& options) {
  SecretsRefresh secrets(frame.tokens.get(), server);
  fmt::print("listening on {}\n", server.url());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  Wait event = Wait::kTime;
  const Seconds period = options.owner ? kOwnerPeriod : kRefreshPeriod;
  while (event != Wait::kStop && !OwnerHasEnded(options)) {
    event = frame.signals->WaitUntil(clock.Now() + period, clock);
    if (event == Wait::kReopen && frame.log) frame.log->Reopen();
    if (event != Wait::kStop) secrets.Refresh();
  }
  frame.last_resort->Arm(clock.Now() + Seconds(options.shutdown_timeout));
  plans.Stop();  // Callers that wait for a frontier may ask the next server.
  server.BeginShutdown();
  while (!server.WaitForShutdown(kLongTime)) {
  }
  return 0;
}

Result<int> Serve(const ServeOptions& options) {
  SystemClock clock;
  Frame frame;
  ZEUS_TRY(frame.tokens, LoadTokens(options));
  std::string database = options.database;
  if (database.empty()) {
    ZEUS_TRY(database, DefaultDatabaseUrl(EnvironmentVariable));
  }
  if (!options.no_access_log) {
    ZEUS_TRY(frame.log, http::AccessLog::Open(options.files.access_log, clock));
  }
  ZEUS_TRY(auto schedule, LoadSchedule(options.pipeline_schedule));
  ZEUS_TRY(Store store, OpenStore(database));
  // Not earlier: a database that hangs must not keep a signal from ending us.
  ZEUS_TRY(frame.signals, SignalWatch::Start(SignalWatch::Program::kService));
  frame.last_resort.emplace(*frame.signals, clock);
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, options.carbon));
  // Runs that could not report while there was no server are not dead.
  LocalJobService service(
      *store.jobs, clock, SystemEntropy,
      {.absence = LeaseClock::Absence::kLeftOut, .boot_clock = CurrentBootTime});
  Planning planning(store, clock, options, std::move(schedule));
  server::ServerMetrics metrics;
  http::LoginLimiter logins(clock);
  const auto usage = [&store](const std::string& name_space) {
    return CountUsage(store, name_space);
  };
  server::Quotas quotas(usage);
  for (const std::string& quota : options.quotas) ZEUS_RETURN_IF_ERROR(quotas.Add(quota));
  server::Readiness readiness([&store] { return store.jobs->Ping(); }, clock);
  server::JobFeed feed(service, clock);
  const web::Application application(
      {.program = "zeus serve",
       .version = Version(),
       .features = {"jobs", "plans"},
       .token = frame.tokens ? web::TokenUse::kRequired : web::TokenUse::kNone,
       .origins = OriginOptions(options)});
  server::Api api(service, metrics, frame.log.get(),
                  {.plans = &planning.plans,
                   .feed = &feed,
                   .sessions = &planning.sessions,
                   .rank_timeout = Seconds(options.rank_timeout),
                   .access = {.tokens = frame.tokens.get(),
                              .logins = &logins,
                              .origins = OriginOptions(options)},
                   .carbon = &carbon,
                   .quotas = options.quotas.empty() ? nullptr : &quotas,
                   .usage = usage,
                   .ready = [&readiness] { return readiness.Check(); },
                   .more_metrics =
                       [&planning](MetricSet& set) {
                         server::AddSolveFigures(planning.plans.figures(), set);
                         AddProcess(Version(), ProcessCpuTime(), set);
                       },
                   .version = Version(),
                   .application = &application});
  ZEUS_TRY(const std::unique_ptr<http::Server> server,
           http::Server::Start(HttpOptions(options), api, metrics.connections(), clock));
  const Expiry expiry(service, planning.sessions, metrics, clock);
  return ServeUntilSignal(*server, planning.plans, frame, clock, options);
}

}  // namespace

Result<int> RunServe(const ServeOptions& options) {
  try {
    return Serve(options);
  } catch (const std::system_error& error) {
    if (!IsNoThread(error)) throw;
    return NoThreadError();
  }
}

Result<int> MakeToken(const ServeOptions& options) {
  const http::Role role = options.admin       ? http::Role::kAdmin
                          : options.read_only ? http::Role::kRead
                                              : http::Role::kWrite;
  ZEUS_TRY(
      const std::string token,
      http::AddToken(options.tokens,
                     {.name = options.new_token, .role = role, .name_space = options.name_space}));
  fmt::print("{}\n", token);
  return 0;
}

}  // namespace zeus::cli
