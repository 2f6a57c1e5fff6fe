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
#include "zeus/server/openapi.h"
#include "zeus/server/routes.h"
#include "zeus/wire/answers.h"

namespace zeus::server {

Status Readiness::Check() {
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    if (checking_) {
      if (now - checked_at_ > kLongestCheck)
        return Error{ErrorCode::kUnavailable, "the database does not answer"};
      return latest_;
    }
    if (known_ && now - checked_at_ < kValidity) return latest_;
    checking_ = true;
    checked_at_ = now;
  }
  Status found = check_();
  Record(found);
  return found;
}

void Readiness::Record(Status found) {
  const std::lock_guard lock(mutex_);
  const bool was_ready = !known_ || latest_.ok();
  if (was_ready && !found.ok())
    log::Warning("not ready: {}", found.error().message);
  else if (!was_ready && found.ok())
    log::Warning("ready again");
  checking_ = false;
  known_ = true;
  latest_ = std::move(found);
}

Api::Api(JobService& service, ServerMetrics& metrics, http::AccessLog* log, ApiOptions options)
    : metrics_(metrics), log_(log), options_(std::move(options)), access_(options_.access) {
  const JobTenants jobs{.service = service, .quotas = options_.quotas};
  AddJobRoutes(jobs, metrics_, options_.carbon, router_);
  AddTrialRoutes(jobs, metrics_, router_);
  AddOverviewRoutes(jobs, overviews_, router_);
  if (options_.feed != nullptr) AddFeedRoute(*options_.feed, router_);
  AddReferenceRoutes(jobs, metrics_, router_);
  if (options_.plans != nullptr)
    AddPlanRoutes({.service = *options_.plans, .quotas = options_.quotas}, metrics_, router_);
  if (options_.sessions != nullptr)
    AddPipelineRoutes(*options_.sessions, options_.quotas, options_.rank_timeout, router_);
  AddSystemRoutes();
  openapi_ = JsonText(OpenApiDocument(router_.routes(), options_.version));
}

void Api::AddSystemRoutes() {
  const auto add = [this](std::string_view pattern, http::Access access, std::string_view summary,
                          std::string_view schema, std::vector<int> statuses, auto handler) {
    router_.Add({.method = "GET",
                 .pattern = pattern,
                 .access = access,
                 .handler = [handler](const http::Request& r) -> Result<http::Answer> {
                   return handler(r);
                 },
                 .summary = summary,
                 .answer_schema = schema,
                 .statuses = std::move(statuses),
                 .immediate = pattern != "/readyz" && pattern != "/v1/namespaces",
                 .vital = pattern == "/healthz" || pattern == "/metrics"});
  };
  add("/healthz", http::Access::kOpen, "Whether the server runs", "Health", {200},
      [](const http::Request&) {
        return http::JsonAnswer(200, {{"status", "ok"}});
      });
  add("/readyz", http::Access::kOpen, "Whether the database takes changes", "Health", {200, 503},
      [this](const http::Request& request) { return AnswerReadiness(request); });
  add("/v1/namespaces", http::Access::kAdmin, "Name spaces and how much each holds", "NameSpaces",
      {200}, [this](const http::Request&) { return ListNameSpaces(); });
  add("/v1/me", http::Access::kRead, "The caller's name, name space and rights", "Caller", {200},
      [](const http::Request& request) {
        return http::JsonAnswer(200, {{"user", request.user.empty() ? Json() : Json(request.user)},
                                      {"name_space", request.name_space},
                                      {"may_change", request.may_change}});
      });
  add("/openapi.json", http::Access::kOpen, "This document", "OpenApi", {200},
      [this](const http::Request&) { return http::Answer{.body = openapi_}; });
  add("/metrics", http::Access::kRead, "Metrics for Prometheus", "", {200},
      [this](const http::Request&) { return AnswerMetrics(); });
}

http::Answer Api::AnswerMetrics() const {
  MetricSet metrics;
  metrics_.AddTo(metrics);
  AddLoginCounts(access_.counts(), metrics);
  if (log_ != nullptr) AddDroppedLogLines(log_->dropped_lines(), metrics);
  if (options_.more_metrics) options_.more_metrics(metrics);
  return {.body = metrics.Text(), .content_type = MetricSet::kContentType};
}

// The reason may name files and hosts, so only callers with a token get it; the log has it as well.
http::Answer Api::AnswerReadiness(const http::Request& request) const {
  const Status ready = options_.ready ? options_.ready() : Ok();
  if (ready.ok()) return http::JsonAnswer(200, {{"status", "ready"}});
  const bool known = access_.HasToken(request);
  return ErrorAnswer({ErrorCode::kUnavailable,
                      known ? ready.error().message
                            : "the database does not take changes: the server's log says why"},
                     http::Dialect::kOurs);
}

Result<http::Answer> Api::ListNameSpaces() const {
  std::set<std::string> names = {""};
  if (options_.access.tokens != nullptr)
    names.merge(options_.access.tokens->current()->name_spaces());
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
  return http::JsonAnswer(200, {{"namespaces", std::move(list)}});
}

http::Answer Api::Answer(http::Request& request) {
  if (IsForApplication(request)) return options_.application->Answer(request);
  Result<http::Target> target = http::ParseTarget(request.target);
  if (!target.ok())
    return http::RefusalAnswer(400, "bad_request", target.error().message, http::Dialect::kOurs);
  http::RouteMatch match = router_.Find(request.method, target.value().segments);
  if (match.route == nullptr) return http::NoRouteAnswer(request, match);
  const http::Route& route = *match.route;
  request.parameters = std::move(match.parameters);
  request.query = std::move(target.value().query);
  http::Answer answer;
  http::Visitor visitor;
  auto refusal = access_.Refuse(request, route, visitor);
  request.user = visitor.user;
  request.name_space = visitor.name_space;
  request.may_change = visitor.role != http::Role::kRead;
  if (refusal) {
    answer = *std::move(refusal);
  } else if (const Status known = http::CheckQuery(route, request); !known.ok()) {
    answer = ErrorAnswer(known.error(), route.dialect);
  } else {
    Result<http::Answer> handled = route.handler(request);
    answer =
        handled.ok() ? std::move(handled).value() : ErrorAnswer(handled.error(), route.dialect);
  }
  answer.route = route.pattern;
  if (!answer.changed_topic.empty()) {
    answer.changed_topic = ScopedId(request.name_space, answer.changed_topic);
    if (options_.feed != nullptr) options_.feed->NoteChange(answer.changed_topic);
  }
  return answer;
}

http::Work Api::Classify(const http::Request& request) const {
  if (IsForApplication(request)) return http::Work::kImmediate;
  const auto target = http::ParseTarget(request.target);
  if (!target.ok()) return http::Work::kImmediate;
  return http::RouteWork(router_.Find(request.method, target.value().segments).route);
}

// Checks the caller by the header alone, so that strangers cannot fill the memory with bodies.
http::Admission Api::Admit(const http::Request& header) {
  if (IsForApplication(header)) return {};
  const Result<http::Target> target = http::ParseTarget(header.target);
  if (!target.ok())
    return {.refusal = http::RefusalAnswer(400, "bad_request", target.error().message,
                                           http::Dialect::kOurs)};
  const http::RouteMatch match = router_.Find(header.method, target.value().segments);
  if (match.route == nullptr) return {.refusal = http::NoRouteAnswer(header, match)};
  http::Visitor visitor;
  http::Admission admission{.refusal = access_.Refuse(header, *match.route, visitor),
                            .large_body = match.route->large_body,
                            .vital = match.route->vital};
  if (admission.refusal) admission.refusal->route = match.route->pattern;
  return admission;
}

http::Answer Api::Handle(http::Request& request) {
  try {
    return Answer(request);
  } catch (const std::exception& error) {
    log::Failure("{} {}: {}", request.method, Printable(request.target), error.what());
    return http::RefusalAnswer(500, "internal", "the server failed to answer: its log says why",
                               http::Dialect::kOurs);
  }
}

http::Answer Api::Refusal(int status, const std::string& why) {
  const char* code = status == 408                    ? "timeout"
                     : status == 413 || status == 431 ? "too_large"
                     : status == 501                  ? "not_supported"
                     : status == 503                  ? "unavailable"
                                                      : "bad_request";
  http::Answer answer = http::RefusalAnswer(status, code, why, http::Dialect::kOurs);
  if (status == 503) answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

void Api::Finished(const http::FinishedRequest& request) {
  // Clients can invent any path and method, so unknown ones share one label of the metrics.
  http::FinishedRequest counted = request;
  if (counted.route.empty()) {
    counted.route = "none";
    counted.method = "other";
  }
  metrics_.Observe(counted);
  if (log_ != nullptr) log_->Add(request);
}

}  // namespace zeus::server
