#include "zeus/daemon/api/daemon_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"
#include "zeus/daemon/api/node_openapi.h"
#include "zeus/daemon/api/node_routes.h"

namespace zeus::daemon {
namespace {

constexpr std::string_view kBearer = "Bearer ";

http::Answer Unauthorized(const std::string& why) {
  http::Answer answer = http::RefusalAnswer(401, "unauthorized", why);
  answer.headers.emplace_back("WWW-Authenticate", R"(Bearer realm="zeusd")");
  return answer;
}

// Queries are checked on all routes: a misspelt parameter must not be ignored silently.
Status CheckKnownParameters(const NodeRoute& route, const http::Request& request) {
  for (const auto& [name, value] : request.query)
    if (std::ranges::count(route.query, name) == 0)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: is no parameter of {}", Printable(name), route.pattern)};
  return Ok();
}

}  // namespace

// The other end of a connection, with its grant as long as the configuration stays the same.
class DaemonHandler::Peer final : public http::ConnectionPeer {
 public:
  explicit Peer(Caller caller) : caller_(std::make_shared<const Caller>(std::move(caller))) {}

  const std::shared_ptr<const Caller>& caller() const { return caller_; }

  std::shared_ptr<const Grant> GrantFrom(const Daemon& daemon) const {
    const std::uint64_t number = daemon.configuration_number();
    const std::lock_guard lock(mutex_);
    if (!grant_ || number_ != number) {
      number_ = number;
      grant_ = std::make_shared<const Grant>(daemon.GrantOf(*caller_));
    }
    return grant_;
  }

 private:
  const std::shared_ptr<const Caller> caller_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Grant> grant_{};  // Guarded by mutex_, as is the next.
  mutable std::uint64_t number_ = 0;
};

DaemonHandler::DaemonHandler(Daemon& daemon, NodeMetrics& metrics, Options options)
    : daemon_(daemon), metrics_(metrics), options_(std::move(options)), guard_(options_.origins) {
  AddNodeRoutes(daemon_, routes_);
  AddLeaseRoutes(daemon_, routes_);
  AddWatchRoutes(daemon_, routes_);
  AddJobRoutes(daemon_, routes_);
  AddOperatorRoutes(daemon_, routes_);
  AddReferenceRoutes(daemon_, {.groups = options_.groups, .tokens = NeedsIdentity()}, routes_);
  AddSystemRoutes();
  openapi_ = JsonText(OpenApiDocument(routes_.routes(), Version()));
}

void DaemonHandler::AddSystemRoutes() {
  const auto add = [this](NodeRoute route, auto handler) {
    route.method = "GET";
    route.handler = handler;
    // Metrics name jobs and users.
    route.open = route.pattern != "/metrics";
    routes_.Add(std::move(route));
  };
  add({.pattern = "/healthz",
       .summary = "Whether the daemon runs",
       .work = http::Work::kImmediate,
       .vital = true},
      [](const Call&) {
        return http::JsonAnswer(200, {{"status", "ok"}});
      });
  add({.pattern = "/readyz",
       .summary = "Whether knobs can be set",
       .statuses = {200, 503},
       .work = http::Work::kImmediate,
       .vital = true},
      [this](const Call&) {
        const Status ready = daemon_.Ready();
        return ready.ok() ? http::JsonAnswer(200, {{"status", "ready"}}) : ToAnswer(ready.error());
      });
  add({.pattern = "/openapi.json", .summary = "This document", .work = http::Work::kImmediate},
      [this](const Call&) { return http::Answer{.body = openapi_}; });
  add({.pattern = "/metrics", .summary = "Metrics for Prometheus", .vital = true},
      [this](const Call& call) {
        return http::Answer{.body = metrics_.Text(daemon_, call.grant),
                            .content_type = MetricSet::kContentType};
      });
}

http::Reception DaemonHandler::Connected(const http::AcceptedConnection& connection) {
  const std::uint64_t number = ++connections_;
  if (connection.transport == http::AcceptedConnection::Transport::kTcp)
    return {.peer = std::make_shared<Peer>(PeerReader::OverTcp(number))};
  auto caller = peers_.Read(connection.descriptor, number);
  if (!caller.ok())
    return {.refusal = "the daemon cannot see who connects: " + caller.error().message};
  // Connections are counted by user. Root can take all of them anyhow, and repairs what others did.
  std::string key = caller.value().is_host_root() ? "" : caller.value().subject;
  return {.peer = std::make_shared<Peer>(std::move(caller).value()),
          .counting_key = std::move(key)};
}

void DaemonHandler::Disconnected(const http::ConnectionPeer& peer) {
  daemon_.book().ConnectionClosed(static_cast<const Peer&>(peer).caller()->connection);
}

// Browsers name a page's origin when it is another one, or when it changes something; the page of
// the daemon itself only reads.
std::optional<http::Answer> DaemonHandler::RefusePage(const http::Request& request) const {
  if (!request.origin.empty())
    return http::RefusalAnswer(403, "permission_denied", "web pages get no answers here");
  if (const auto why = guard_.Refuse(request, false))
    return http::RefusalAnswer(403, "permission_denied", *why);
  return std::nullopt;
}

DaemonHandler::Admitted DaemonHandler::AdmitAs(Caller bearer,
                                               std::optional<WallTime> expires) const {
  Admitted admitted;
  admitted.token_expires = expires;
  admitted.grant = std::make_shared<const Grant>(daemon_.GrantOf(bearer));
  admitted.caller = std::make_shared<const Caller>(std::move(bearer));
  return admitted;
}

// The caller that a request's certificate names; nullopt without one that is valid now.
std::optional<Caller> DaemonHandler::CertifiedCaller(const http::Request& request,
                                                     const Caller& connected) const {
  const bool valid = request.certificate && clock().WallNow() < request.certificate->expires;
  if (!valid || connected.transport != Caller::Transport::kTcp) return std::nullopt;
  Caller caller = connected;
  caller.subject = "cert:" + request.certificate->name;
  return caller;
}

// Finds the caller of a request: the process behind the connection, the bearer of a token, or the
// owner of a certificate.
DaemonHandler::Admitted DaemonHandler::Identify(const NodeRoute& route,
                                                const http::Request& request) {
  Admitted admitted;
  const auto* peer = static_cast<const Peer*>(request.peer.get());
  if (peer == nullptr) {
    admitted.refusal = http::RefusalAnswer(503, "unavailable", "the daemon does not know you");
    return admitted;
  }
  admitted.caller = peer->caller();
  const bool tcp = admitted.caller->transport == Caller::Transport::kTcp;
  if (tcp) admitted.refusal = RefusePage(request);
  if (admitted.refusal) return admitted;
  if (options_.tokens != nullptr && !request.authorization.empty()) {
    const std::string_view text = request.authorization;
    const auto claims = options_.tokens->Check(
        text.starts_with(kBearer) ? Trim(text.substr(kBearer.size())) : std::string_view());
    if (claims.ok()) {
      Caller bearer = *admitted.caller;
      bearer.token_scopes = claims.value().scopes;
      if (tcp) bearer.subject = claims.value().subject;
      return AdmitAs(std::move(bearer), claims.value().expires);
    }
    metrics_.CountDenial(NodeMetrics::Denial::kToken);
    if (!route.open) admitted.refusal = Unauthorized(claims.error().message);
  } else if (auto certified = CertifiedCaller(request, *admitted.caller)) {
    return AdmitAs(*std::move(certified), request.certificate->expires);
  } else if (tcp && NeedsIdentity() && !route.open) {
    metrics_.CountDenial(NodeMetrics::Denial::kNoToken);
    admitted.refusal = Unauthorized("this needs a token: Authorization: Bearer …");
  }
  // Where nobody can say who they are, callers over TCP are strangers.
  if (tcp && !NeedsIdentity())
    admitted.grant = std::make_shared<const Grant>(daemon_.configuration()->defaults);
  else
    admitted.grant = peer->GrantFrom(daemon_);
  return admitted;
}

std::optional<http::Answer> DaemonHandler::Refuse(const NodeRoute& route,
                                                  const http::Request& request,
                                                  const Admitted& admitted) {
  if (!route.scope || admitted.grant->scopes.Has(*route.scope)) return std::nullopt;
  metrics_.CountDenial(NodeMetrics::Denial::kScope);
  http::Answer answer = ToAnswer(
      Error{ErrorCode::kPermissionDenied,
            fmt::format("{} needs the scope {}, which no rule grants to {}: see GET /v1/whoami",
                        route.pattern, zeus::daemon::Name(*route.scope),
                        Printable(admitted.caller->subject))});
  AuditRefusal(request, *admitted.caller, answer);
  return answer;
}

DaemonHandler::Admitted DaemonHandler::AdmitTo(const NodeRoute& route,
                                               const http::Request& request) {
  Admitted admitted;
  if (route.group != ApiGroup::kNone && !options_.groups.contains(route.group)) {
    admitted.refusal = ToAnswer(
        Error{ErrorCode::kNotFound, fmt::format("{} is switched off here: --enable {}",
                                                route.pattern, zeus::daemon::Name(route.group))});
    return admitted;
  }
  admitted = Identify(route, request);
  if (!admitted.refusal) admitted.refusal = Refuse(route, request, admitted);
  return admitted;
}

void DaemonHandler::AuditRefusal(const http::Request& request, const Caller& caller,
                                 const http::Answer& answer) {
  AuditEntry entry{.event = "refused",
                   .subject = caller.subject,
                   .executable = caller.executable,
                   .reason = fmt::format("{} {}", request.method, Printable(request.target)),
                   .outcome = std::to_string(answer.status)};
  if (caller.process) entry.pid = caller.process->pid;
  daemon_.audit().AppendRefusal(std::move(entry));
}

http::Work DaemonHandler::Classify(const http::Request& request) const {
  if (IsForApplication(request)) return http::Work::kImmediate;
  const auto target = http::ParseTarget(request.target);
  if (!target.ok()) return http::Work::kImmediate;
  const RouteTable::Match match = routes_.Find(request.method, target.value().segments);
  return match.route == nullptr ? http::Work::kImmediate : match.route->work;
}

http::Admission DaemonHandler::Admit(const http::Request& header) {
  if (IsForApplication(header)) return {};
  const auto target = http::ParseTarget(header.target);
  if (!target.ok())
    return {.refusal = http::RefusalAnswer(400, "bad_request", target.error().message)};
  const RouteTable::Match match = routes_.Find(header.method, target.value().segments);
  if (match.route == nullptr) return {.refusal = http::NoRouteAnswer(header, match.match)};
  http::Admission admission{.refusal = AdmitTo(*match.route, header).refusal,
                            .vital = match.route->vital};
  if (admission.refusal) admission.refusal->route = match.route->pattern;
  return admission;
}

http::Answer DaemonHandler::Answer(http::Request& request) {
  if (IsForApplication(request)) return options_.application->Answer(request);
  auto target = http::ParseTarget(request.target);
  if (!target.ok()) return http::RefusalAnswer(400, "bad_request", target.error().message);
  RouteTable::Match match = routes_.Find(request.method, target.value().segments);
  if (match.route == nullptr) {
    // Unknown paths are told to nobody who has yet to show a token.
    Admitted unknown = Identify({}, request);
    return unknown.refusal ? *std::move(unknown.refusal)
                           : http::NoRouteAnswer(request, match.match);
  }
  const NodeRoute& route = *match.route;
  request.parameters = std::move(match.match.parameters);
  request.query = std::move(target.value().query);
  Admitted admitted = AdmitTo(route, request);
  http::Answer answer;
  if (admitted.caller) request.user = admitted.caller->subject;
  if (admitted.refusal) {
    answer = *std::move(admitted.refusal);
  } else if (const Status known = CheckKnownParameters(route, request); !known.ok()) {
    answer = ToAnswer(known.error());
  } else {
    answer = route.handler({.request = request,
                            .caller = admitted.caller,
                            .shared_grant = admitted.grant,
                            .token_expires = admitted.token_expires});
    const bool denied = answer.status == 403 || answer.status == 429;
    if (denied) AuditRefusal(request, *admitted.caller, answer);
  }
  answer.route = route.pattern;
  return answer;
}

http::Answer DaemonHandler::Handle(http::Request& request) {
  try {
    return Answer(request);
  } catch (const std::exception& error) {
    log::Failure("{} {}: {}", request.method, Printable(request.target), error.what());
    return http::RefusalAnswer(500, "internal", "the daemon failed to answer: its log says why");
  }
}

http::Answer DaemonHandler::Refusal(int status, const std::string& why) {
  const char* code = status == 408                    ? "timeout"
                     : status == 413 || status == 431 ? "too_large"
                     : status == 501                  ? "not_supported"
                     : status == 503                  ? "unavailable"
                                                      : "bad_request";
  http::Answer answer = http::RefusalAnswer(status, code, why);
  if (status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

void DaemonHandler::Finished(const http::FinishedRequest& request) {
  metrics_.Observe(request);
  if (options_.log != nullptr) options_.log->Add(request);
}

}  // namespace zeus::daemon
