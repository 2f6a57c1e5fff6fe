#include "zeus/server/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/server/openapi.h"
#include "zeus/server/routes.h"
#include "zeus/wire/answers.h"

namespace zeus::server {

Api::Api(JobService& service, ServerMetrics& metrics, http::AccessLog* log, ApiOptions options)
    : http::RoutedHandler(options.access),
      metrics_(metrics),
      log_(log),
      options_(std::move(options)) {
  const JobTenants jobs{.service = service, .quotas = options_.quotas};
  AddJobRoutes(jobs, metrics_, options_.carbon, table());
  AddTrialRoutes(jobs, metrics_, {.carbon = options_.carbon, .clock = options_.clock}, table());
  AddOverviewRoutes(jobs, overviews_, table());
  if (options_.feed != nullptr) AddFeedRoute(*options_.feed, table());
  AddReferenceRoutes(jobs, metrics_, table());
  if (options_.plans != nullptr)
    AddPlanRoutes({.service = *options_.plans, .quotas = options_.quotas}, metrics_, table());
  if (options_.sessions != nullptr)
    AddPipelineRoutes(*options_.sessions, options_.quotas, options_.rank_timeout, table());
  if (options_.budget != nullptr) AddBudgetRoutes(*options_.budget, table());
  AddSystemRoutes();
  openapi_ = JsonText(OpenApiDocument(router().routes(), options_.version));
}

void Api::AddSystemRoutes() {
  const auto add = [this](std::string_view pattern, http::Access access, std::string_view summary,
                          std::string_view schema, std::vector<int> statuses, auto handler) {
    table().Add({.method = "GET",
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
  AddLoginCounts(access().counts(), metrics);
  if (log_ != nullptr) AddDroppedLogLines(log_->dropped_lines(), metrics);
  if (options_.more_metrics) options_.more_metrics(metrics);
  return {.body = metrics.Text(), .content_type = MetricSet::kContentType};
}

// The reason may name files and hosts, so only callers with a token get it; the log has it as well.
http::Answer Api::AnswerReadiness(const http::Request& request) const {
  const Status ready = options_.ready ? options_.ready() : Ok();
  if (ready.ok()) return http::JsonAnswer(200, {{"status", "ready"}});
  const bool known = access().HasToken(request);
  return server::ErrorAnswer(
      {ErrorCode::kUnavailable,
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

http::Answer Api::ErrorAnswer(const Error& error, http::Dialect dialect) const {
  return server::ErrorAnswer(error, dialect);
}

void Api::Finished(const http::FinishedRequest& request) {
  metrics_.requests().Observe(request);
  if (log_ != nullptr) log_->Add(request);
}

}  // namespace zeus::server
