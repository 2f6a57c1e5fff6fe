#include "zeus/server/job_routes.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/job/job_policy.h"
#include "zeus/server/event_stream.h"
#include "zeus/server/json_answer.h"
#include "zeus/server/query_reader.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/body.h"
#include "zeus/wire/requests.h"

namespace zeus::server {
namespace {

Result<Json> JobJson(const Job& job) {
  ZEUS_TRY(JobPolicy policies, JobPolicy::Restore(job));
  ZEUS_TRY(const BatchSizePolicy* policy, policies.For(job.spec.gpu_model));
  return wire::ToJson(job, wire::JobProgress{.stage = std::string(policy->stage()),
                                             .best_batch_size = policy->Best(job.spec.gpu_model)});
}

Result<HttpAnswer> Register(JobService& service, ServerMetrics& metrics,
                            const HttpRequest& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const JobSpec spec, JobSpecFromJson(body));
  ZEUS_TRY(const RegisteredJob registered, service.Register(spec));
  ZEUS_TRY(const Json json, JobJson(registered.job));
  if (!registered.created) return JsonAnswer(200, json);
  metrics.CountJob();
  HttpAnswer answer = JsonAnswer(201, json);
  answer.headers.emplace_back("Location", "/v1/jobs/" + registered.job.spec.id);
  return answer;
}

// "key" or "key:value".
void ReadLabel(const Query& parameters, JobQuery& query) {
  const auto label = FindParameter(parameters, "label");
  if (!label) return;
  const auto colon = label->find(':');
  query.label = label->substr(0, colon);
  if (colon != std::string::npos) query.label_value = label->substr(colon + 1);
}

Result<HttpAnswer> ListJobs(JobService& service, const HttpRequest& request) {
  ZEUS_TRY(const int limit, PageSize(request.query));
  JobQuery query{.after = FindParameter(request.query, "after").value_or(""), .limit = limit};
  ReadLabel(request.query, query);
  ZEUS_TRY(const std::vector<Job> jobs, service.ListJobs(query));
  Json list = Json::array();
  for (const Job& job : jobs) {
    ZEUS_TRY(Json json, JobJson(job));
    list.push_back(std::move(json));
  }
  const bool full = jobs.size() == static_cast<std::size_t>(limit);
  return JsonAnswer(
      200, {{"jobs", std::move(list)}, {"next", full ? Json(jobs.back().spec.id) : Json()}});
}

Result<HttpAnswer> GetJob(JobService& service, const HttpRequest& request) {
  ZEUS_TRY(const Job job, service.GetJob(request.parameters[0]));
  ZEUS_TRY(const Json json, JobJson(job));
  return JsonAnswer(200, json);
}

Result<HttpAnswer> DeleteJob(JobService& service, const HttpRequest& request) {
  ZEUS_RETURN_IF_ERROR(service.Delete(request.parameters[0]));
  return HttpAnswer{.status = 204, .changed_job = request.parameters[0]};
}

Result<HttpAnswer> GetArms(JobService& service, const HttpRequest& request) {
  const std::string model = FindParameter(request.query, "gpu_model").value_or("");
  ZEUS_TRY(const JobArms arms, service.GetArms(request.parameters[0], model));
  return JsonAnswer(200, wire::ToJson(arms));
}

Result<HttpAnswer> GetSavings(JobService& service, const CarbonAccounting* carbon,
                              const HttpRequest& request) {
  const SavingsQuery query{.job_id = request.parameters[0],
                           .gpu_model = FindParameter(request.query, "gpu_model").value_or(""),
                           .baseline_job = FindParameter(request.query, "baseline").value_or("")};
  ZEUS_TRY(const JobSavings savings, carbon != nullptr
                                         ? GetSavingsWithCarbon(service, query, *carbon)
                                         : service.GetSavings(query));
  return JsonAnswer(200, wire::ToJson(savings));
}

Result<HttpAnswer> LearnEpochCost(JobService& service, const HttpRequest& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const EpochCostReport report,
           wire::EpochCostReportFromJson(request.parameters[0], body));
  ZEUS_RETURN_IF_ERROR(service.LearnEpochCost(report));
  return HttpAnswer{.status = 204, .changed_job = request.parameters[0]};
}

Result<HttpAnswer> ListEvents(const ScopedJobService& scoped, const HttpRequest& request) {
  ScopedJobService service = scoped;
  const std::string& job_id = request.parameters[0];
  ZEUS_TRY(const int limit, PageSize(request.query));
  ZEUS_TRY(const std::int64_t after, IntegerParameter(request.query, "after", 0));
  // Only the job itself tells whether "no events" means "no job".
  ZEUS_TRY(const Job job, service.GetJob(job_id));
  if (request.accept.find("text/event-stream") != std::string::npos) {
    const Query query =
        request.last_event_id.empty() ? Query() : Query{{"Last-Event-ID", request.last_event_id}};
    ZEUS_TRY(const std::int64_t seen, IntegerParameter(query, "Last-Event-ID", after));
    return HttpAnswer{.content_type = "text/event-stream",
                      .events = std::make_shared<JobEventStream>(service, job.spec.id, seen)};
  }
  ZEUS_TRY(const std::vector<JobEvent> events, service.ListEvents(job_id, after, limit));
  Json list = Json::array();
  for (const JobEvent& event : events) list.push_back(wire::ToJson(event));
  const bool full = events.size() == static_cast<std::size_t>(limit);
  return JsonAnswer(
      200, {{"events", std::move(list)}, {"next", full ? Json(events.back().sequence) : Json()}});
}

// The routes of one job beyond its description: what is known about it and what happened to it.
void AddKnowledgeRoutes(const JobTenants& tenants, const CarbonAccounting* carbon, Router& router) {
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/arms",
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return GetArms(service, r);
              }),
              .summary = "What is believed about each batch size on a GPU model",
              .answer_schema = "Arms",
              .statuses = {200, 404},
              .query = {"gpu_model"}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/savings",
              .handler = tenants.Jobs([carbon](ScopedJobService& service, const HttpRequest& r) {
                return GetSavings(service, carbon, r);
              }),
              .summary = "What the job has saved against undisturbed runs of its default",
              .answer_schema = "Savings",
              .statuses = {200, 404},
              .query = {"gpu_model", "baseline"}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/epoch-costs",
              .access = Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return LearnEpochCost(service, r);
              }),
              .summary = "Tell what an epoch costs on a GPU model, measured without a run",
              .request_schema = "EpochCost",
              .statuses = {204, 404, 422}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/events",
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return ListEvents(service, r);
              }),
              .summary = "What happened to a job; with Accept: text/event-stream, live",
              .answer_schema = "EventPage",
              .statuses = {200, 404, 422},
              .query = {"after", "limit"}});
}

}  // namespace

void AddJobRoutes(const JobTenants& tenants, ServerMetrics& metrics, const CarbonAccounting* carbon,
                  Router& router) {
  router.Add({.method = "POST",
              .pattern = "/v1/jobs",
              .access = Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return Register(service, metrics, r);
              }),
              .summary = "Register a job, or find it when there is one with the same spec",
              .request_schema = "JobSpec",
              .answer_schema = "Job",
              .statuses = {200, 201, 409, 422}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs",
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return ListJobs(service, r);
              }),
              .summary = "List jobs by id",
              .answer_schema = "JobPage",
              .statuses = {200, 422},
              .query = {"after", "limit", "label"}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}",
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return GetJob(service, r);
              }),
              .summary = "A job and what has been learned about it",
              .answer_schema = "Job",
              .statuses = {200, 404}});
  router.Add({.method = "DELETE",
              .pattern = "/v1/jobs/{id}",
              .access = Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const HttpRequest& r) {
                return DeleteJob(service, r);
              }),
              .summary = "Delete a job with its trials and events",
              .statuses = {204, 404}});
  AddKnowledgeRoutes(tenants, carbon, router);
}

}  // namespace zeus::server
