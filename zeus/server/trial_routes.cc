#include <string>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/server/job_routes.h"
#include "zeus/server/json_answer.h"
#include "zeus/server/query_reader.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/body.h"
#include "zeus/wire/requests.h"

namespace zeus::server {
namespace {

Result<HttpAnswer> Start(JobService& service, ServerMetrics& metrics, const HttpRequest& request) {
  // All fields are optional, and so is the body.
  Json body = Json::object();
  if (!request.body.empty()) {
    ZEUS_TRY(body, wire::ParseBody(request.body));
  }
  ZEUS_TRY(const TrialRequest asked, wire::TrialRequestFromJson(request.parameters[0], body));
  ZEUS_TRY(const StartedTrial started, service.StartTrial(asked));
  metrics.CountTrial(started.trial);
  HttpAnswer answer = JsonAnswer(201, wire::ToJson(started));
  answer.changed_job = asked.job_id;
  return answer;
}

Result<HttpAnswer> ReportEpoch(JobService& service, ServerMetrics& metrics,
                               const HttpRequest& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const TrialReport report,
           wire::TrialReportFromJson(request.parameters[0], number, body));
  ZEUS_TRY(const ReportAnswer reported, service.Report(report));
  metrics.CountTrial(reported.trial);
  HttpAnswer answer = JsonAnswer(200, wire::ToJson(reported));
  answer.changed_job = report.job_id;
  return answer;
}

Result<HttpAnswer> Heartbeat(JobService& service, const HttpRequest& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Trial trial, service.Heartbeat(request.parameters[0], number));
  return JsonAnswer(200, wire::ToJson(trial));
}

Result<HttpAnswer> EndTrial(JobService& service, ServerMetrics& metrics,
                            const HttpRequest& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const TrialEnd end, wire::TrialEndFromJson(request.parameters[0], number, body));
  ZEUS_TRY(const Trial trial, service.EndTrial(end));
  metrics.CountTrial(trial);
  HttpAnswer answer = JsonAnswer(200, wire::ToJson(trial));
  answer.changed_job = end.job_id;
  return answer;
}

Result<HttpAnswer> GetTrial(JobService& service, const HttpRequest& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Trial trial, service.GetTrial(request.parameters[0], number));
  return JsonAnswer(200, wire::ToJson(trial));
}

Result<HttpAnswer> ListTrials(JobService& service, const HttpRequest& request) {
  ZEUS_TRY(const int limit, PageSize(request.query));
  ZEUS_TRY(const std::int64_t after, IntegerParameter(request.query, "after", 0));
  TrialQuery query{.after = after, .limit = limit};
  if (const auto name = FindParameter(request.query, "status")) {
    query.status = TrialStatusNamed(*name);
    if (!query.status)
      return Error{ErrorCode::kInvalidArgument,
                   "status: " + Quote(*name) + " is no status of a trial"};
  }
  ZEUS_TRY(const Job job, service.GetJob(request.parameters[0]));
  ZEUS_TRY(const std::vector<Trial> trials, service.ListTrials(job.spec.id, query));
  Json list = Json::array();
  for (const Trial& trial : trials) list.push_back(wire::ToJson(trial));
  const bool full = trials.size() == static_cast<std::size_t>(limit);
  return JsonAnswer(
      200, {{"trials", std::move(list)}, {"next", full ? Json(trials.back().number) : Json()}});
}

void AddReadingRoutes(const JobTenants& tenants, Router& router) {
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/trials",
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return ListTrials(service, r);
              }),
              .summary = "List trials by number",
              .answer_schema = "TrialPage",
              .statuses = {200, 404, 422},
              .query = {"after", "limit", "status"}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/trials/{trial}",
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return GetTrial(service, r);
              }),
              .summary = "A trial",
              .answer_schema = "Trial",
              .statuses = {200, 404}});
}

}  // namespace

void AddTrialRoutes(const JobTenants& tenants, ServerMetrics& metrics, Router& router) {
  AddReadingRoutes(tenants, router);
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials",
              .access = Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return Start(service, metrics, r);
              }),
              .summary = "Ask which batch size to run with, and begin a trial",
              .request_schema = "TrialRequest",
              .answer_schema = "StartedTrial",
              .statuses = {201, 404, 409, 422}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials/{trial}/reports",
              .access = Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return ReportEpoch(service, metrics, r);
              }),
              .summary = "ReportEpoch an epoch; the answer says whether to go on",
              .request_schema = "TrialReport",
              .answer_schema = "ReportAnswer",
              .statuses = {200, 404, 409, 422}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials/{trial}/heartbeat",
              .access = Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return Heartbeat(service, r);
              }),
              .summary = "A sign of life between reports",
              .answer_schema = "Trial",
              .statuses = {200, 404, 409}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials/{trial}/end",
              .access = Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return EndTrial(service, metrics, r);
              }),
              .summary = "EndTrial a trial that will not report any more",
              .request_schema = "TrialEnd",
              .answer_schema = "Trial",
              .statuses = {200, 404, 422}});
}

}  // namespace zeus::server
