#include "apps/zeus/serve/serve_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/zeus/output.h"
#include "apps/zeus/serve/last_resort.h"
#include "zeus/base/boot_time.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/base/user_files.h"
#include "zeus/base/version.h"
#include "zeus/export/prometheus.h"
#include "zeus/job/local_job_service.h"
#include "zeus/plan/local_plan_service.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/server/api.h"
#include "zeus/server/http_server.h"
#include "zeus/server/open_files.h"
#include "zeus/server/readiness.h"
#include "zeus/store/open_repository.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kExpiryPeriod = 5s;
constexpr Seconds kRefreshPeriod = 5s;
constexpr Seconds kOwnerPeriod = 500ms;
constexpr Seconds kForever = std::chrono::hours(24 * 365);
constexpr std::size_t kLargestSchedule = std::size_t{64} << 20;

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

server::HttpServerOptions HttpOptions(const ServeOptions& options) {
  const std::size_t connections =
      options.max_connections.value_or(server::ConnectionsByOpenFiles());
  // One address never has all connections, unless that is asked for.
  const std::size_t half = std::max<std::size_t>(1, connections / 2);
  server::HttpServerOptions http{
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
  if (!options.tls_certificate.empty())
    http.tls = server::TlsFiles{.certificate = options.tls_certificate, .key = options.tls_key};
  return http;
}

// Null: there are none, and everybody may do everything.
Result<std::unique_ptr<server::TokenFile>> LoadTokens(const ServeOptions& options) {
  const bool remote = !server::IsLocal(options.listen);
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
    return std::unique_ptr<server::TokenFile>();
  }
  if (remote && options.tls_certificate.empty()) {
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
  return server::TokenFile::Open(options.tokens);
}

// Names under which a server may be asked that only this machine can reach.
server::OriginGuard::Options OriginsOf(const ServeOptions& options) {
  const bool unix_socket = options.listen.starts_with("unix:");
  return {.local = !unix_socket && server::IsLocal(options.listen),
          .listen_host = unix_socket ? "" : options.listen,
          .hosts = options.hosts};
}

Result<std::vector<pipeline::RankClocks>> LoadSchedule(const std::string& file) {
  if (file.empty()) return std::vector<pipeline::RankClocks>();
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestSchedule));
  auto schedule = pipeline::ParseReferenceSchedule(text);
  if (!schedule.ok()) return std::move(schedule).error().While(Printable(file));
  return schedule;
}

Result<server::Usage> UsageOf(Store& store, const std::string& name_space) {
  ZEUS_TRY(const JobCounts jobs, store.jobs->Count(name_space));
  ZEUS_TRY(const std::int64_t plans, store.plans->Count(name_space));
  return server::Usage{.jobs = jobs.jobs, .trials = jobs.trials, .plans = plans};
}

// What answers for pipelines.
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

// Frees the places of runs that died, and forgets pipelines, now and then.
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

// Reads tokens, certificate and key again when their files have changed; what cannot be used is
// warned about once, and the old ones stay.
class SecretsRefresh {
 public:
  SecretsRefresh(server::TokenFile* tokens, server::HttpServer& server)
      : tokens_(tokens), server_(server) {}

  void Look() {
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

  server::TokenFile* const tokens_;
  server::HttpServer& server_;
  std::string token_complaint_{};
  std::string tls_complaint_{};
};

using Wait = Signals::Event;

// What is needed to the very end, in the order in which it goes: the last resort guards everything
// that is made after it.
struct Frame {
  std::unique_ptr<server::TokenFile> tokens{};
  std::unique_ptr<server::AccessLog> log{};
  std::optional<Signals> signals{};
  std::optional<LastResort> last_resort{};
};

// Whether the process to which the server belongs has ended, of which we were a child. The death
// signal of prctl() would come at the end of the thread that started us, and a pipe would stay
// open in every process that the owner has forked.
bool OwnerHasEnded(const ServeOptions& options) {
  return options.owner && static_cast<std::uint64_t>(::getppid()) != *options.owner;
}

// Returns the exit code, unless the last resort has one.
Result<int> ServeUntilSignal(server::HttpServer& server, LocalPlanService& plans, Frame& frame,
                             const Clock& clock, const ServeOptions& options) {
  SecretsRefresh secrets(frame.tokens.get(), server);
  fmt::print("listening on {}\n", server.url());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  Wait event = Wait::kTime;
  const Seconds period = options.owner ? kOwnerPeriod : kRefreshPeriod;
  while (event != Wait::kStop && !OwnerHasEnded(options)) {
    event = frame.signals->WaitUntil(clock.Now() + period, clock);
    if (event == Wait::kReopen && frame.log) frame.log->Reopen();
    if (event != Wait::kStop) secrets.Look();
  }
  frame.last_resort->Arm(clock.Now() + Seconds(options.shutdown_timeout));
  plans.Stop();  // Whoever waits for a frontier may ask the next server.
  server.BeginShutdown();
  while (!server.WaitForShutdown(kForever)) {
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
    ZEUS_TRY(frame.log, server::AccessLog::Open(options.access_log, clock));
  }
  ZEUS_TRY(auto schedule, LoadSchedule(options.pipeline_schedule));
  ZEUS_TRY(Store store, OpenStore(database));
  // Not earlier: a database that hangs must not keep a signal from ending us.
  frame.signals.emplace(Signals::Program::kService);
  frame.last_resort.emplace(*frame.signals, clock);
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, options.carbon));
  // Runs that could not report while there was no server are not dead.
  LocalJobService service(
      *store.jobs, clock, SystemEntropy,
      {.absence = LeaseClock::Absence::kLeftOut, .boot_clock = CurrentBootTime});
  Planning planning(store, clock, options, std::move(schedule));
  server::ServerMetrics metrics;
  server::LoginLimiter logins(clock);
  const auto usage = [&store](const std::string& name_space) { return UsageOf(store, name_space); };
  server::Quotas quotas(usage);
  for (const std::string& quota : options.quotas) ZEUS_RETURN_IF_ERROR(quotas.Add(quota));
  server::Readiness readiness([&store] { return store.jobs->Ping(); }, clock);
  server::Api api(service, metrics, frame.log.get(),
                  {.plans = &planning.plans,
                   .sessions = &planning.sessions,
                   .rank_patience = Seconds(options.rank_timeout),
                   .tokens = frame.tokens.get(),
                   .logins = &logins,
                   .quotas = options.quotas.empty() ? nullptr : &quotas,
                   .carbon = &carbon,
                   .origins = OriginsOf(options),
                   .usage = usage,
                   .ready = [&readiness] { return readiness.Check(); },
                   .more_metrics =
                       [&planning](MetricSet& set) {
                         server::AddSolveFigures(planning.plans.figures(), set);
                         AddProcess(Version(), ProcessCpuTime(), set);
                       },
                   .version = Version()});
  ZEUS_TRY(const std::unique_ptr<server::HttpServer> server,
           server::HttpServer::Start(HttpOptions(options), api, metrics, clock));
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
  const server::Role role = options.admin       ? server::Role::kAdmin
                            : options.read_only ? server::Role::kRead
                                                : server::Role::kWrite;
  ZEUS_TRY(const std::string token,
           server::AddToken(
               options.tokens,
               {.name = options.new_token, .role = role, .name_space = options.name_space}));
  fmt::print("{}\n", token);
  return 0;
}

}  // namespace zeus::cli
