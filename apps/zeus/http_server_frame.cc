#include "apps/zeus/http_server_frame.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/http/url.h"
#include "zeus/store/open_repository.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kLongTime = std::chrono::hours(24 * 365);

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

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

}  // namespace

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

HttpServerFrame::HttpServerFrame() = default;
HttpServerFrame::~HttpServerFrame() = default;

Status HttpServerFrame::Open(const HttpServerOptions& options, const Clock& clock) {
  ZEUS_TRY(tokens, LoadTokens(options));
  if (!options.no_access_log) {
    ZEUS_TRY(log, http::AccessLog::Open(options.files.access_log, clock));
  }
  return Ok();
}

Status HttpServerFrame::WatchSignals(const Clock& clock) {
  ZEUS_TRY(signals, SignalWatch::Start(SignalWatch::Program::kService));
  last_resort = std::make_unique<LastResort>(*signals, clock);
  return Ok();
}

http::ServerOptions HttpOptions(const HttpServerOptions& options) {
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

Result<std::unique_ptr<http::TokenFile>> LoadTokens(const HttpServerOptions& options) {
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

http::OriginGuard::Options OriginOptions(const HttpServerOptions& options) {
  // A malformed address is an error of Server::Start(), and a Unix socket has no name to check.
  const auto address = http::ParseListenAddress(options.listen);
  const bool tcp = address.ok() && !address.value().is_unix();
  return {.local = tcp && http::IsLocal(options.listen),
          .listen_host = tcp ? options.listen : "",
          .hosts = options.hosts};
}

Result<std::string> DatabaseUrl(const HttpServerOptions& options) {
  if (!options.database.empty()) return options.database;
  return DefaultDatabaseUrl(EnvironmentVariable);
}

Result<int> ServeUntilSignal(http::Server& server, HttpServerFrame& frame, const Clock& clock,
                             const HttpServerOptions& options, const ServingHooks& hooks) {
  using Event = SignalWatch::Event;
  SecretsRefresh secrets(frame.tokens.get(), server);
  fmt::print("listening on {}\n", server.url());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  Event event = Event::kTime;
  while (event != Event::kStop && !(hooks.must_end && hooks.must_end())) {
    event = frame.signals->WaitUntil(clock.Now() + hooks.period, clock);
    if (event == Event::kReopen && frame.log) frame.log->Reopen();
    if (event != Event::kStop) secrets.Refresh();
  }
  frame.last_resort->Arm(clock.Now() + Seconds(options.shutdown_timeout));
  if (hooks.before_shutdown) hooks.before_shutdown();
  server.BeginShutdown();
  while (!server.WaitForShutdown(kLongTime)) {
  }
  return 0;
}

Result<int> RunServer(const std::function<Result<int>()>& serve) {
  try {
    return serve();
  } catch (const std::system_error& error) {
    if (!IsNoThread(error)) throw;
    return NoThreadError();
  }
}

Result<int> MakeToken(const HttpServerOptions& options) {
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
