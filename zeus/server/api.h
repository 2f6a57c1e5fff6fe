#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/http/access_control.h"
#include "zeus/http/access_log.h"
#include "zeus/http/message.h"
#include "zeus/http/router.h"
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

// Returns whether the database accepts changes. A small change finds that out, but only once every
// few seconds, so that frequent health checks load neither the disk nor the database. One caller at
// a time makes the check; the others get the latest result. Logs each change between ready and not
// ready, with the reason. Thread-safe; the clock must outlive it.
class Readiness {
 public:
  static constexpr Seconds kValidity{5};
  // A check that takes longer means that the database hangs.
  static constexpr Seconds kLongestCheck{10};

  Readiness(std::function<Status()> check, const Clock& clock)
      : check_(std::move(check)), clock_(clock) {}

  Status Check();

 private:
  void Record(Status found);

  const std::function<Status()> check_;
  const Clock& clock_;
  std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  bool checking_ = false;
  bool known_ = false;
  TimePoint checked_at_{};  // The start of the latest check.
  Status latest_ = Error{ErrorCode::kUnavailable, "the database was not checked yet: ask again"};
};

struct ApiOptions {
  PlanService* plans = nullptr;          // nullptr: the server has no routes for plans.
  JobFeed* feed = nullptr;               // nullptr: the server has no stream of all jobs.
  PipelineSessions* sessions = nullptr;  // nullptr: none for the reference's pipelines either.
  Seconds rank_timeout = Seconds(600);   // The longest time that a rank waits for the others.
  http::AccessControl::Options access{};
  // Converts saved energy into emissions and money; nullptr: answers have neither.
  const CarbonAccounting* carbon = nullptr;
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
class Api final : public http::RequestHandler {
 public:
  // `log` may be null.
  Api(JobService& service, ServerMetrics& metrics, http::AccessLog* log, ApiOptions options);

  http::Work Classify(const http::Request& request) const override;
  http::Admission Admit(const http::Request& header) override;
  http::Answer Handle(http::Request& request) override;
  http::Answer Refusal(int status, const std::string& why) override;
  void Finished(const http::FinishedRequest& request) override;

  const http::Router& router() const { return router_; }

 private:
  http::Answer Answer(http::Request& request);
  bool IsForApplication(const http::Request& request) const {
    return options_.application != nullptr && web::Application::Has(request);
  }
  Result<http::Answer> ListNameSpaces() const;
  http::Answer AnswerReadiness(const http::Request& request) const;
  http::Answer AnswerMetrics() const;
  void AddSystemRoutes();

  ServerMetrics& metrics_;
  JobOverviews overviews_{};
  http::AccessLog* const log_;
  const ApiOptions options_;
  http::AccessControl access_;
  http::Router router_{};
  std::string openapi_{};
};

}  // namespace zeus::server
