#pragma once

#include <functional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/budget/budget_server.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/http/access_control.h"
#include "zeus/http/access_log.h"
#include "zeus/http/message.h"
#include "zeus/http/readiness.h"
#include "zeus/http/routed_handler.h"
#include "zeus/job/job_overview.h"
#include "zeus/job/job_service.h"
#include "zeus/metrics/metric.h"
#include "zeus/plan/pipeline_sessions.h"
#include "zeus/plan/plan_service.h"
#include "zeus/server/job_feed.h"
#include "zeus/server/server_metrics.h"
#include "zeus/server/tenants.h"
#include "zeus/web/application.h"

namespace zeus::server {

using http::Readiness;

struct ApiOptions {
  PlanService* plans = nullptr;            // nullptr: the server has no routes for plans.
  JobFeed* feed = nullptr;                 // nullptr: the server has no stream of all jobs.
  PipelineSessions* sessions = nullptr;    // nullptr: none for the reference's pipelines either.
  Seconds rank_timeout = Seconds(600);     // The longest time that a rank waits for the others.
  budget::BudgetServer* budget = nullptr;  // nullptr: the server shares out no power.
  http::AccessControl::Options access{};
  // Converts saved energy into emissions and money; nullptr: answers have neither.
  const CarbonAccounting* carbon = nullptr;
  // With `carbon`, tells callers when a trial is to begin; nullptr: trials begin when asked for.
  const Clock* clock = nullptr;
  Quotas* quotas = nullptr;  // nullptr: name spaces have no limits.
  // Counts the things that a name space holds.
  std::function<Result<Usage>(const std::string& name_space)> usage{};
  std::function<Status()> ready{};                 // Whether the database accepts changes.
  std::function<void(MetricSet&)> more_metrics{};  // Metrics of objects that Api does not know.
  std::string version{};
  const web::Application* application = nullptr;  // nullptr: the server has no pages.
};

// The job server without its sockets: finds the route of a request, checks the caller, and calls
// the services. Thread-safe. The referenced objects must outlive it.
class Api final : public http::RoutedHandler {
 public:
  // `log` may be null.
  Api(JobService& service, ServerMetrics& metrics, http::AccessLog* log, ApiOptions options);

  void Finished(const http::FinishedRequest& request) override;

 private:
  http::Answer ErrorAnswer(const Error& error, http::Dialect dialect) const override;
  bool IsForPage(const http::Request& request) const override {
    return options_.application != nullptr && web::Application::Has(request);
  }
  http::Answer PageAnswer(const http::Request& request) const override {
    return options_.application->Answer(request);
  }
  void NoteChange(const std::string& topic) override {
    if (options_.feed != nullptr) options_.feed->NoteChange(topic);
  }
  Result<http::Answer> ListNameSpaces() const;
  http::Answer AnswerReadiness(const http::Request& request) const;
  http::Answer AnswerMetrics() const;
  void AddSystemRoutes();

  ServerMetrics& metrics_;
  JobOverviews overviews_{};
  http::AccessLog* const log_;
  const ApiOptions options_;
  std::string openapi_{};
};

}  // namespace zeus::server
