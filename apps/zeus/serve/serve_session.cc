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
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/base/user_files.h"
#include "zeus/export/prometheus.h"
#include "zeus/job/local_job_service.h"
#include "zeus/server/api.h"
#include "zeus/server/http_server.h"
#include "zeus/store/open_repository.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kExpiryPeriod = 5s;
constexpr Seconds kForever = std::chrono::hours(24 * 365);

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

server::HttpServerOptions HttpOptions(const ServeOptions& options) {
  server::HttpServerOptions http{.listen = options.listen,
                                 .limits = {.body = options.max_body,
                                            .connections = options.max_connections,
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

// Frees the places of runs that died, now and then.
class Expiry {
 public:
  Expiry(LocalJobService& service, server::ServerMetrics& metrics, const Clock& clock)
      : service_(service),
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
    return clock_.Now() + kExpiryPeriod;
  }

  LocalJobService& service_;
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
Result<int> ServeUntilSignal(server::HttpServer& server, Frame& frame, const Clock& clock,
                             Seconds patience) {
  fmt::print("listening on {}\n", server.url());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  Wait event = Wait::kTime;
  while (event != Wait::kStop) {
    event = frame.signals->WaitUntil(clock.Now() + kForever, clock);
    if (event == Wait::kReopen && frame.log) frame.log->Reopen();
  }
  frame.last_resort.emplace(*frame.signals, clock.Now() + patience, clock);
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
  ZEUS_TRY(const std::unique_ptr<JobRepository> repository, OpenRepository(database));
  // Not earlier: a database that hangs must not keep a signal from ending us.
  frame.signals.emplace(Signals::Program::kService);
  LocalJobService service(*repository, clock);
  server::ServerMetrics metrics;
  server::Api api(
      service, metrics, frame.log.get(),
      {.tokens = std::move(tokens),
       .ready = [&repository] { return repository->Ping(); },
       .more_metrics = [](MetricSet& set) { AddProcess(ZEUS_VERSION, ProcessCpuTime(), set); },
       .version = ZEUS_VERSION});
  ZEUS_TRY(const std::unique_ptr<server::HttpServer> server,
           server::HttpServer::Start(HttpOptions(options), api, metrics, clock));
  const Expiry expiry(service, metrics, clock);
  return ServeUntilSignal(*server, frame, clock, Seconds(options.shutdown_timeout));
}

Result<int> MakeToken(const ServeOptions& options) {
  ZEUS_TRY(const std::string token,
           server::AddToken(options.tokens, options.new_token,
                            options.read_only ? server::Role::kRead : server::Role::kWrite));
  fmt::print("{}\n", token);
  return 0;
}

}  // namespace zeus::cli
