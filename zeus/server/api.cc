#include "zeus/server/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/server/job_routes.h"
#include "zeus/server/json_answer.h"
#include "zeus/server/openapi.h"
#include "zeus/server/pipeline_routes.h"
#include "zeus/server/plan_routes.h"
#include "zeus/server/reference_routes.h"
#include "zeus/server/scoped_services.h"
#include "zeus/server/target.h"
#include "zeus/wire/answers.h"

namespace zeus::server {
namespace {

constexpr std::string_view kScheme = "bearer ";

// The token of "Bearer zeus_…"; empty when there is none.
std::string_view TokenOf(std::string_view authorization) {
  if (LowerCase(authorization.substr(0, kScheme.size())) != kScheme) return {};
  return Trim(authorization.substr(kScheme.size()));
}

HttpAnswer WrongMethod(const HttpRequest& request, const std::vector<std::string>& allowed) {
  HttpAnswer answer =
      RefusalAnswer(405, "method_not_allowed",
                    fmt::format("this path does not know {}: use {}", Printable(request.method),
                                fmt::join(allowed, ", ")),
                    Dialect::kOurs);
  answer.headers.emplace_back("Allow", fmt::format("{}", fmt::join(allowed, ", ")));
  return answer;
}

HttpAnswer NoRoute(const HttpRequest& request, const RouteMatch& match) {
  if (!match.allowed.empty()) return WrongMethod(request, match.allowed);
  return RefusalAnswer(404, "not_found", "there is no such path: see /openapi.json",
                       Dialect::kOurs);
}

// A misspelt parameter must not be lost quietly. Clients of the reference may say more.
Status CheckQuery(const Route& route, const HttpRequest& request) {
  if (route.dialect == Dialect::kReference) return Ok();
  for (const auto& [name, value] : request.query)
    if (std::ranges::find(route.query, name) == route.query.end())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: is no parameter of this path", Printable(name))};
  return Ok();
}

}  // namespace

Api::Api(JobService& service, ServerMetrics& metrics, AccessLog* log, ApiOptions options)
    : metrics_(metrics), log_(log), options_(std::move(options)), guard_(options_.origins) {
  const JobTenants jobs{.service = service, .quotas = options_.quotas};
  AddJobRoutes(jobs, metrics_, options_.carbon, router_);
  AddTrialRoutes(jobs, metrics_, router_);
  AddReferenceRoutes(jobs, metrics_, router_);
  if (options_.plans != nullptr)
    AddPlanRoutes({.service = *options_.plans, .quotas = options_.quotas}, metrics_, router_);
  if (options_.sessions != nullptr)
    AddPipelineRoutes(*options_.sessions, options_.quotas, options_.rank_patience, router_);
  AddSystemRoutes();
  openapi_ = wire::Text(OpenApiDocument(router_.routes(), options_.version));
}

void Api::AddSystemRoutes() {
  const auto add = [this](std::string_view pattern, Access access, std::string_view summary,
                          std::string_view schema, std::vector<int> statuses, auto handler) {
    router_.Add(
        {.method = "GET",
         .pattern = pattern,
         .access = access,
         .handler = [handler](const HttpRequest& r) -> Result<HttpAnswer> { return handler(r); },
         .summary = summary,
         .answer_schema = schema,
         .statuses = std::move(statuses),
         .at_once = pattern != "/readyz" && pattern != "/v1/namespaces",
         .vital = pattern == "/healthz" || pattern == "/metrics"});
  };
  add("/healthz", Access::kOpen, "Whether the server runs", "Health", {200},
      [](const HttpRequest&) {
        return JsonAnswer(200, {{"status", "ok"}});
      });
  add("/readyz", Access::kOpen, "Whether the database takes changes", "Health", {200, 503},
      [this](const HttpRequest& request) { return AnswerReadiness(request); });
  add("/v1/namespaces", Access::kAdmin, "Name spaces and how much each holds", "NameSpaces", {200},
      [this](const HttpRequest&) { return ListNameSpaces(); });
  add("/openapi.json", Access::kOpen, "This document", "OpenApi", {200},
      [this](const HttpRequest&) { return HttpAnswer{.body = openapi_}; });
  add("/metrics", Access::kRead, "Metrics for Prometheus", "", {200}, [this](const HttpRequest&) {
    MetricSet metrics;
    metrics_.AddTo(metrics);
    if (log_ != nullptr) log_->AddTo(metrics);
    if (options_.more_metrics) options_.more_metrics(metrics);
    return HttpAnswer{.body = metrics.Text(), .content_type = MetricSet::kContentType};
  });
}

// The reason names files and hosts, which are no business of strangers. The log has it, too.
HttpAnswer Api::AnswerReadiness(const HttpRequest& request) const {
  const Status ready = options_.ready ? options_.ready() : Ok();
  if (ready.ok()) return JsonAnswer(200, {{"status", "ready"}});
  const bool known = options_.tokens != nullptr &&
                     options_.tokens->current()->Find(TokenOf(request.authorization));
  return ErrorAnswer({ErrorCode::kUnavailable,
                      known ? ready.error().message
                            : "the database does not take changes: the server's log says why"},
                     Dialect::kOurs);
}

Result<HttpAnswer> Api::ListNameSpaces() const {
  std::set<std::string> names = {""};
  if (options_.tokens != nullptr) names.merge(options_.tokens->current()->name_spaces());
  if (options_.quotas != nullptr) names.merge(options_.quotas->name_spaces());
  Json list = Json::array();
  for (const std::string& name : names) {
    Usage usage;
    if (options_.usage) {
      ZEUS_TRY(usage, options_.usage(name));
    }
    list.push_back(
        {{"name", name}, {"jobs", usage.jobs}, {"trials", usage.trials}, {"plans", usage.plans}});
  }
  return JsonAnswer(200, {{"namespaces", std::move(list)}});
}

std::optional<HttpAnswer> Api::RefuseLogin(const HttpRequest& request, Dialect dialect,
                                           Visitor& visitor) {
  const std::string_view token = TokenOf(request.authorization);
  if (token.empty()) {
    metrics_.CountFailedLogin(ServerMetrics::FailedLogin::kMissing);
    HttpAnswer answer =
        RefusalAnswer(401, "unauthorized",
                      "this server wants a token: send Authorization: Bearer <token>", dialect);
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
  }
  const auto entry = options_.tokens->current()->Find(token);
  using Verdict = LoginLimiter::Verdict;
  const Verdict by_itself = entry ? Verdict::kAccept : Verdict::kReject;
  const Verdict verdict = options_.logins == nullptr
                              ? by_itself
                              : options_.logins->Judge(request.address, entry ? entry->name : "");
  if (verdict == Verdict::kTooMany) {
    metrics_.CountRefusedLogin();
    HttpAnswer answer = RefusalAnswer(
        429, "too_many_failures",
        "too many wrong tokens came from this address: wait before you try another", dialect);
    answer.headers.emplace_back("Retry-After", "3");
    return answer;
  }
  if (verdict == Verdict::kReject) {
    metrics_.CountFailedLogin(ServerMetrics::FailedLogin::kWrong);
    HttpAnswer answer = RefusalAnswer(
        401, "unauthorized",
        "this token is not known here: it was mistyped or revoked, or belongs to another server",
        dialect);
    answer.headers.emplace_back("WWW-Authenticate", "Bearer error=\"invalid_token\"");
    return answer;
  }
  visitor = {.user = entry->name, .name_space = entry->name_space, .role = entry->role};
  return std::nullopt;
}

// Administrators say in which name space they act; others may repeat what their token says.
std::optional<HttpAnswer> Api::RefuseNameSpace(const HttpRequest& request, Dialect dialect,
                                               Visitor& visitor) const {
  if (!request.wanted_name_space) return std::nullopt;
  const std::string& wanted = *request.wanted_name_space;
  if (const Status valid = CheckIdentifier("Zeus-Namespace", wanted); !valid.ok())
    return RefusalAnswer(400, "bad_request", valid.error().message, dialect);
  if (visitor.role != Role::kAdmin && wanted != visitor.name_space)
    return RefusalAnswer(403, "permission_denied",
                         fmt::format("the token {} is not for the name space {}",
                                     Quote(visitor.user), Quote(wanted)),
                         dialect);
  visitor.name_space = wanted;
  return std::nullopt;
}

std::optional<HttpAnswer> Api::RefuseAccess(const HttpRequest& request, const Route& route,
                                            Visitor& visitor) {
  if (route.access == Access::kOpen) return std::nullopt;
  if (const auto why = guard_.Refuse(request, route.access == Access::kWrite))
    return RefusalAnswer(403, "permission_denied", *why, route.dialect);
  if (options_.tokens != nullptr)
    if (auto refusal = RefuseLogin(request, route.dialect, visitor)) return refusal;
  if (auto refusal = RefuseNameSpace(request, route.dialect, visitor)) return refusal;
  if (route.access == Access::kWrite && visitor.role == Role::kRead)
    return RefusalAnswer(403, "permission_denied",
                         fmt::format("the token {} is for reading only", Quote(visitor.user)),
                         route.dialect);
  if (route.access == Access::kAdmin && visitor.role != Role::kAdmin)
    return RefusalAnswer(403, "permission_denied",
                         fmt::format("the token {} is not an administrator's", Quote(visitor.user)),
                         route.dialect);
  return std::nullopt;
}

HttpAnswer Api::Answer(HttpRequest& request) {
  Result<Target> target = ParseTarget(request.target);
  if (!target.ok())
    return RefusalAnswer(400, "bad_request", target.error().message, Dialect::kOurs);
  RouteMatch match = router_.Find(request.method, target.value().segments);
  if (match.route == nullptr) return NoRoute(request, match);
  const Route& route = *match.route;
  request.parameters = std::move(match.parameters);
  request.query = std::move(target.value().query);
  HttpAnswer answer;
  Visitor visitor;
  auto refusal = RefuseAccess(request, route, visitor);
  request.user = visitor.user;
  request.name_space = visitor.name_space;
  if (refusal) {
    answer = *std::move(refusal);
  } else if (const Status known = CheckQuery(route, request); !known.ok()) {
    answer = ErrorAnswer(known.error(), route.dialect);
  } else {
    Result<HttpAnswer> handled = route.handler(request);
    answer =
        handled.ok() ? std::move(handled).value() : ErrorAnswer(handled.error(), route.dialect);
  }
  answer.route = route.pattern;
  if (!answer.changed_job.empty())
    answer.changed_job = ScopedId(request.name_space, answer.changed_job);
  return answer;
}

WaitsFor Api::Weigh(const HttpRequest& request) const {
  const auto target = ParseTarget(request.target);
  if (!target.ok()) return WaitsFor::kNothing;
  const Route* route = router_.Find(request.method, target.value().segments).route;
  if (route == nullptr || route->at_once) return WaitsFor::kNothing;
  if (route->plans) return WaitsFor::kPlanning;
  return route->access == Access::kWrite ? WaitsFor::kWriting : WaitsFor::kReading;
}

// Decides by the header alone, so that strangers fill no memory with bodies.
Admission Api::Admit(const HttpRequest& header) {
  const Result<Target> target = ParseTarget(header.target);
  if (!target.ok())
    return {.refusal = RefusalAnswer(400, "bad_request", target.error().message, Dialect::kOurs)};
  const RouteMatch match = router_.Find(header.method, target.value().segments);
  if (match.route == nullptr) return {.refusal = NoRoute(header, match)};
  Visitor visitor;
  Admission admission{.refusal = RefuseAccess(header, *match.route, visitor),
                      .large_body = match.route->large_body,
                      .vital = match.route->vital};
  if (admission.refusal) admission.refusal->route = match.route->pattern;
  return admission;
}

HttpAnswer Api::Handle(HttpRequest& request) {
  try {
    return Answer(request);
  } catch (const std::exception& error) {
    log::Failure("{} {}: {}", request.method, Printable(request.target), error.what());
    return RefusalAnswer(500, "internal", "the server failed to answer: its log says why",
                         Dialect::kOurs);
  }
}

HttpAnswer Api::Refusal(int status, const std::string& why) {
  const char* code = status == 408                    ? "timeout"
                     : status == 413 || status == 431 ? "too_large"
                     : status == 501                  ? "not_supported"
                     : status == 503                  ? "unavailable"
                                                      : "bad_request";
  HttpAnswer answer = RefusalAnswer(status, code, why, Dialect::kOurs);
  if (status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

void Api::Finished(const FinishedRequest& request) {
  // Clients make up paths and methods; the labels of metrics are ours.
  FinishedRequest counted = request;
  if (counted.route.empty()) {
    counted.route = "none";
    counted.method = "other";
  }
  metrics_.Observe(counted);
  if (log_ != nullptr) log_->Add(request);
}

}  // namespace zeus::server
