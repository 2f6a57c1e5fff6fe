#include "apps/zeus/serve/serve_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "apps/zeus/output.h"
#include "apps/zeus/serve/last_resort.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/log.h"
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
#include "zeus/store/open_repository.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kExpiryPeriod = 5s;
constexpr Seconds kForever = std::chrono::hours(24 * 365);
constexpr std::size_t kLargestSchedule = std::size_t{64} << 20;

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

server::HttpServerOptions HttpOptions(const ServeOptions& options) {
  server::HttpServerOptions http{
      .listen = options.listen,
      .limits = {.body = options.max_body,
                 .connections = options.max_connections.value_or(server::ConnectionsByOpenFiles()),
                 .workers = static_cast<int>(options.workers),
                 .header_time = Seconds(options.header_timeout),
                 .body_time = Seconds(3 * options.header_timeout),
                 .idle_time = Seconds(options.idle_timeout),
                 .request_time = Seconds(options.request_timeout)}};
  if (!options.tls_certificate.empty())
    http.tls = server::TlsFiles{.certificate = options.tls_certificate, .key = options.tls_key};
  return http;
}

Result<std::optional<server::TokenStore>> LoadTokens(const ServeOptions& options) {
  if (options.tokens.empty()) {
    if (!options.insecure && !server::IsLocal(options.listen))
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} can be reached from other machines: give --tokens, or --insecure "
                      "to serve everybody",
                      Quote(options.listen))};
    return std::optional<server::TokenStore>();
  }
  ZEUS_TRY(server::TokenStore tokens, server::TokenStore::Load(options.tokens));
  if (tokens.size() == 0)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} holds no token: make one with zeus serve --tokens {} --new-token "
                             "NAME",
                             Printable(options.tokens), Printable(options.tokens))};
  return std::optional(std::move(tokens));
}

Result<std::vector<pipeline::RankClocks>> LoadSchedule(const std::string& file) {
  if (file.empty()) return std::vector<pipeline::RankClocks>();
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestSchedule));
  auto schedule = pipeline::ParseReferenceSchedule(text);
  if (!schedule.ok()) return std::move(schedule).error().While(Printable(file));
  return schedule;
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

using Wait = Signals::Event;

// What is needed to the very end, in the order in which it goes: the last resort guards everything
// that is made after it.
struct Frame {
  std::unique_ptr<server::AccessLog> log{};
  std::optional<Signals> signals{};
  std::optional<LastResort> last_resort{};
};

// The exit code, unless the last resort has one.
Result<int> ServeUntilSignal(server::HttpServer& server, LocalPlanService& plans, Frame& frame,
                             const Clock& clock, Seconds patience) {
  fmt::print("listening on {}\n", server.url());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  Wait event = Wait::kTime;
  while (event != Wait::kStop) {
    event = frame.signals->WaitUntil(clock.Now() + kForever, clock);
    if (event == Wait::kReopen && frame.log) frame.log->Reopen();
  }
  frame.last_resort.emplace(*frame.signals, clock.Now() + patience, clock);
  plans.Stop();  // Whoever waits for a frontier may ask the next server.
  server.BeginShutdown();
  while (!server.WaitForShutdown(kForever)) {
  }
  return 0;
}

}  // namespace

Result<int> RunServe(const ServeOptions& options) {
  const SystemClock clock;
  Frame frame;
  ZEUS_TRY(std::optional<server::TokenStore> tokens, LoadTokens(options));
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
  LocalJobService service(*store.jobs, clock);
  Planning planning(store, clock, options, std::move(schedule));
  server::ServerMetrics metrics;
  server::Api api(service, metrics, frame.log.get(),
                  {.plans = &planning.plans,
                   .sessions = &planning.sessions,
                   .rank_patience = Seconds(options.rank_timeout),
                   .tokens = std::move(tokens),
                   .ready = [&store] { return store.jobs->Ping(); },
                   .more_metrics =
                       [&planning](MetricSet& set) {
                         server::AddSolveFigures(planning.plans.figures(), set);
                         AddProcess(Version(), ProcessCpuTime(), set);
                       },
                   .version = Version()});
  ZEUS_TRY(const std::unique_ptr<server::HttpServer> server,
           server::HttpServer::Start(HttpOptions(options), api, metrics, clock));
  const Expiry expiry(service, planning.sessions, metrics, clock);
  return ServeUntilSignal(*server, planning.plans, frame, clock, Seconds(options.shutdown_timeout));
}

Result<int> MakeToken(const ServeOptions& options) {
  ZEUS_TRY(const std::string token,
           server::AddToken(options.tokens, options.new_token,
                            options.read_only ? server::Role::kRead : server::Role::kWrite));
  fmt::print("{}\n", token);
  return 0;
}

}  // namespace zeus::cli
