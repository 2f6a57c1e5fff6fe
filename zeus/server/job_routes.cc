#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/job_policy.h"
#include "zeus/job/memory_repository.h"
#include "zeus/job/other_eta.h"
#include "zeus/job/start_advice.h"
#include "zeus/server/routes.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/overviews.h"
#include "zeus/wire/requests.h"

namespace zeus::server {
namespace {

Result<Json> JobJson(const Job& job) {
  ZEUS_TRY(JobPolicy policies, JobPolicy::Restore(job));
  ZEUS_TRY(const BatchSizePolicy* policy, policies.For(job.spec.gpu_model));
  return wire::ToJson(job, wire::JobProgress{.stage = std::string(policy->stage()),
                                             .best_batch_size = policy->Best(job.spec.gpu_model)});
}

Result<http::Answer> Register(JobService& service, ServerMetrics& metrics,
                              const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const JobSpec spec, JobSpecFromJson(body));
  ZEUS_TRY(const RegisteredJob registered, service.Register(spec));
  ZEUS_TRY(const Json json, JobJson(registered.job));
  if (!registered.created) return http::JsonAnswer(200, json);
  metrics.CountJob();
  http::Answer answer = http::JsonAnswer(201, json);
  answer.headers.emplace_back("Location", "/v1/jobs/" + registered.job.spec.id);
  answer.changed_topic = registered.job.spec.id;
  return answer;
}

Result<http::Answer> ListJobs(JobService& service, const http::Request& request) {
  ZEUS_TRY(const JobQuery query, ReadJobQuery(request.query));
  ZEUS_TRY(const std::vector<Job> jobs, service.ListJobs(query));
  Json list = Json::array();
  for (const Job& job : jobs) {
    ZEUS_TRY(Json json, JobJson(job));
    list.push_back(std::move(json));
  }
  const bool full = jobs.size() == static_cast<std::size_t>(query.limit);
  return http::JsonAnswer(
      200, {{"jobs", std::move(list)}, {"next", full ? Json(jobs.back().spec.id) : Json()}});
}

Result<http::Answer> GetJob(JobService& service, const http::Request& request) {
  ZEUS_TRY(const Job job, service.GetJob(request.parameters[0]));
  ZEUS_TRY(const Json json, JobJson(job));
  return http::JsonAnswer(200, json);
}

Result<http::Answer> DeleteJob(JobService& service, const http::Request& request) {
  ZEUS_RETURN_IF_ERROR(service.Delete(request.parameters[0]));
  return http::Answer{.status = 204, .changed_topic = request.parameters[0]};
}

Result<http::Answer> GetArms(JobService& service, const http::Request& request) {
  const std::string model = FindParameter(request.query, "gpu_model").value_or("");
  if (const auto eta = FindParameter(request.query, "eta")) {
    const auto number = ParseDouble(*eta);
    if (!number.ok()) return InvalidArgument("eta: must be a number from 0 to 1: " + Quote(*eta));
    ZEUS_TRY(const Job job, service.GetJob(request.parameters[0]));
    ZEUS_TRY(const std::vector<Trial> trials, AllTrials(service, job.spec.id));
    ZEUS_TRY(const OtherEta other, ReplayUnderEta(job, trials, model, number.value()));
    return http::JsonAnswer(200, wire::ToJson(other));
  }
  ZEUS_TRY(const JobArms arms, service.GetArms(request.parameters[0], model));
  return http::JsonAnswer(200, wire::ToJson(arms));
}

Result<http::Answer> GetSavings(JobService& service, const CarbonAccounting* carbon,
                                const http::Request& request) {
  const SavingsQuery query{.job_id = request.parameters[0],
                           .gpu_model = FindParameter(request.query, "gpu_model").value_or(""),
                           .baseline_job = FindParameter(request.query, "baseline").value_or("")};
  ZEUS_TRY(const JobSavings savings, carbon != nullptr
                                         ? GetSavingsWithCarbon(service, query, *carbon)
                                         : service.GetSavings(query));
  return http::JsonAnswer(200, wire::ToJson(savings));
}

Result<http::Answer> LearnEpochCost(JobService& service, const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const EpochCostReport report,
           wire::EpochCostReportFromJson(request.parameters[0], body));
  ZEUS_RETURN_IF_ERROR(service.LearnEpochCost(report));
  return http::Answer{.status = 204, .changed_topic = request.parameters[0]};
}

constexpr int kEventsAtOnce = 200;

// The events of a job as server-sent events, beginning after a sequence number. They begin at the
// first one when the job never had that number, or was deleted and registered again. The service
// must outlive the stream.
class JobEventStream final : public http::EventSource {
 public:
  JobEventStream(const ScopedJobService& service, std::string job_id, std::int64_t seen)
      : service_(service),
        job_id_(std::move(job_id)),
        inner_id_(ScopedId(service.name_space(), job_id_)),
        seen_(seen) {}

  const std::string& topic() const override { return inner_id_; }
  Result<std::string> Next() override;

 private:
  ScopedJobService service_;
  const std::string job_id_;
  const std::string inner_id_;  // The id with its name space.
  std::int64_t seen_;
  std::optional<WallTime> created_at_{};  // Tells a job from its successor with the same id.
};

Result<std::string> JobEventStream::Next() {
  // The error of a deleted job ends its stream.
  ZEUS_TRY(const Job job, service_.GetJob(job_id_));
  if (created_at_.value_or(job.created_at) != job.created_at || job.events < seen_) seen_ = 0;
  created_at_ = job.created_at;
  ZEUS_TRY(const std::vector<JobEvent> events, service_.ListEvents(job_id_, seen_, kEventsAtOnce));
  std::string text;
  for (const JobEvent& event : events) {
    fmt::format_to(std::back_inserter(text), "id: {}\nevent: {}\ndata: {}\n\n", event.sequence,
                   Name(event.kind), JsonText(wire::ToJson(event)));
    seen_ = event.sequence;
  }
  return text;
}

Result<http::Answer> ListEvents(const ScopedJobService& scoped, const http::Request& request) {
  ScopedJobService service = scoped;
  const std::string& job_id = request.parameters[0];
  ZEUS_TRY(const int limit, PageSize(request.query));
  ZEUS_TRY(const std::int64_t after, IntegerParameter(request.query, "after", 0));
  // Without this a job that does not exist would look like one without events.
  ZEUS_TRY(const Job job, service.GetJob(job_id));
  if (request.accept.find("text/event-stream") != std::string::npos) {
    const Query query =
        request.last_event_id.empty() ? Query() : Query{{"Last-Event-ID", request.last_event_id}};
    ZEUS_TRY(const std::int64_t seen, IntegerParameter(query, "Last-Event-ID", after));
    return http::Answer{.content_type = "text/event-stream",
                        .events = std::make_shared<JobEventStream>(service, job.spec.id, seen)};
  }
  ZEUS_TRY(const std::vector<JobEvent> events, service.ListEvents(job_id, after, limit));
  Json list = Json::array();
  for (const JobEvent& event : events) list.push_back(wire::ToJson(event));
  const bool full = events.size() == static_cast<std::size_t>(limit);
  return http::JsonAnswer(
      200, {{"events", std::move(list)}, {"next", full ? Json(events.back().sequence) : Json()}});
}

// The routes of one job beyond its description: beliefs, savings, costs and events.
void AddKnowledgeRoutes(const JobTenants& tenants, const CarbonAccounting* carbon,
                        http::Router& router) {
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/arms",
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return GetArms(service, r);
              }),
              .summary = "What is believed about each batch size on a GPU model, also had eta been "
                         "another",
              .answer_schema = "Arms",
              .statuses = {200, 404, 422},
              .query = {"gpu_model", "eta"}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/savings",
              .handler = tenants.Jobs([carbon](ScopedJobService& service, const http::Request& r) {
                return GetSavings(service, carbon, r);
              }),
              .summary = "What the job has saved against undisturbed runs of its default",
              .answer_schema = "Savings",
              .statuses = {200, 404},
              .query = {"gpu_model", "baseline"}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/epoch-costs",
              .access = http::Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return LearnEpochCost(service, r);
              }),
              .summary = "Tell what an epoch costs on a GPU model, measured without a run",
              .request_schema = "EpochCost",
              .statuses = {204, 404, 422}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/events",
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return ListEvents(service, r);
              }),
              .summary = "What happened to a job; with Accept: text/event-stream, live",
              .answer_schema = "EventPage",
              .statuses = {200, 404, 422},
              .query = {"after", "limit"}});
}

// --- trials ---

// The answer to a caller that asks too early, or nullopt when the trial is to begin now. Nothing is
// kept: the caller asks again, and the newest forecast decides. Without a forecast it begins now.
Result<std::optional<http::Answer>> PlannedStart(JobService& service, const StartPlanning& planning,
                                                 const std::string& job_id, const Json& wanted) {
  const std::optional<http::Answer> begin_now;
  if (planning.carbon == nullptr || planning.clock == nullptr)
    return FieldError("start", "this server plans no starts: it has no --carbon and no --price");
  const WallTime now = planning.clock->WallNow();
  ZEUS_TRY(const StartWish wish, StartWishFromJson(wanted, now));
  if (!planning.carbon->knows(wish.goal))
    return FieldError("start", wish.goal == ShiftGoal::kCarbon
                                   ? "this server was started without --carbon"
                                   : "this server was started without --price");
  ZEUS_TRY(const Job job, service.GetJob(job_id));
  ZEUS_TRY(const std::vector<Trial> trials, AllTrials(service, job_id));
  const auto advice =
      AdviseStart(*planning.carbon, wish, EstimateRun(trials, job.spec.gpu_model), now, now);
  if (!advice.ok() || advice.value().plan.start <= now) return begin_now;
  const WallTime start = advice.value().plan.start;
  return std::optional(http::JsonAnswer(200, {{"start_at", ToText(start)},
                                              {"start_in_seconds", Seconds(start - now).count()},
                                              {"why", ToSentence(advice.value(), now)},
                                              {"advice", ToJson(advice.value())}}));
}

Result<http::Answer> Start(JobService& service, ServerMetrics& metrics,
                           const StartPlanning& planning, const http::Request& request) {
  // All fields are optional, and so is the body.
  Json body = Json::object();
  if (!request.body.empty()) {
    ZEUS_TRY(body, wire::ParseBody(request.body));
  }
  Json wanted;
  if (const auto start = body.find("start"); body.is_object() && start != body.end()) {
    wanted = *start;
    body.erase(start);
  }
  ZEUS_TRY(const TrialRequest asked, wire::TrialRequestFromJson(request.parameters[0], body));
  // Further tries of a recurrence that has begun do not wait.
  if (!wanted.is_null() && !asked.recurrence) {
    ZEUS_TRY(auto later, PlannedStart(service, planning, asked.job_id, wanted));
    if (later) return *std::move(later);
  }
  ZEUS_TRY(const StartedTrial started, service.StartTrial(asked));
  metrics.CountTrial(started.trial);
  http::Answer answer = http::JsonAnswer(201, wire::ToJson(started));
  answer.changed_topic = asked.job_id;
  return answer;
}

Result<http::Answer> ReportEpoch(JobService& service, ServerMetrics& metrics,
                                 const http::Request& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const TrialReport report,
           wire::TrialReportFromJson(request.parameters[0], number, body));
  ZEUS_TRY(const ReportAnswer reported, service.Report(report));
  metrics.CountTrial(reported.trial);
  http::Answer answer = http::JsonAnswer(200, wire::ToJson(reported));
  answer.changed_topic = report.job_id;
  return answer;
}

Result<http::Answer> Heartbeat(JobService& service, const http::Request& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Trial trial, service.Heartbeat(request.parameters[0], number));
  return http::JsonAnswer(200, wire::ToJson(trial));
}

Result<http::Answer> EndTrial(JobService& service, ServerMetrics& metrics,
                              const http::Request& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const TrialEnd end, wire::TrialEndFromJson(request.parameters[0], number, body));
  ZEUS_TRY(const Trial trial, service.EndTrial(end));
  metrics.CountTrial(trial);
  http::Answer answer = http::JsonAnswer(200, wire::ToJson(trial));
  answer.changed_topic = end.job_id;
  return answer;
}

Result<http::Answer> GetTrial(JobService& service, const http::Request& request) {
  ZEUS_TRY(const std::int64_t number, TrialNumber(request.parameters[1]));
  ZEUS_TRY(const Trial trial, service.GetTrial(request.parameters[0], number));
  return http::JsonAnswer(200, wire::ToJson(trial));
}

Result<http::Answer> ListTrials(JobService& service, const http::Request& request) {
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
  return http::JsonAnswer(
      200, {{"trials", std::move(list)}, {"next", full ? Json(trials.back().number) : Json()}});
}

void AddReadingRoutes(const JobTenants& tenants, http::Router& router) {
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/trials",
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return ListTrials(service, r);
              }),
              .summary = "List trials by number",
              .answer_schema = "TrialPage",
              .statuses = {200, 404, 422},
              .query = {"after", "limit", "status"}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}/trials/{trial}",
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return GetTrial(service, r);
              }),
              .summary = "A trial",
              .answer_schema = "Trial",
              .statuses = {200, 404}});
}

}  // namespace

void AddJobRoutes(const JobTenants& tenants, ServerMetrics& metrics, const CarbonAccounting* carbon,
                  http::Router& router) {
  router.Add({.method = "POST",
              .pattern = "/v1/jobs",
              .access = http::Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return Register(service, metrics, r);
              }),
              .summary = "Register a job, or find it when there is one with the same spec",
              .request_schema = "JobSpec",
              .answer_schema = "Job",
              .statuses = {200, 201, 409, 422}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs",
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return ListJobs(service, r);
              }),
              .summary = "List jobs by id",
              .answer_schema = "JobPage",
              .statuses = {200, 422},
              .query = {"after", "limit", "label"}});
  router.Add({.method = "GET",
              .pattern = "/v1/jobs/{id}",
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return GetJob(service, r);
              }),
              .summary = "A job and what has been learned about it",
              .answer_schema = "Job",
              .statuses = {200, 404}});
  router.Add({.method = "DELETE",
              .pattern = "/v1/jobs/{id}",
              .access = http::Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return DeleteJob(service, r);
              }),
              .summary = "Delete a job with its trials and events",
              .statuses = {204, 404}});
  AddKnowledgeRoutes(tenants, carbon, router);
}

void AddTrialRoutes(const JobTenants& tenants, ServerMetrics& metrics, StartPlanning planning,
                    http::Router& router) {
  AddReadingRoutes(tenants, router);
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials",
              .access = http::Access::kWrite,
              .handler = tenants.Jobs(
                  [&metrics, planning](ScopedJobService& service, const http::Request& r) {
                    return Start(service, metrics, planning, r);
                  }),
              .summary = "Ask which batch size to run with, and begin a trial; or, with \"start\", "
                         "when it is to begin (200)",
              .request_schema = "TrialRequest",
              .answer_schema = "StartedTrialOrStart",
              .statuses = {200, 201, 404, 409, 422}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials/{trial}/reports",
              .access = http::Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return ReportEpoch(service, metrics, r);
              }),
              .summary = "Report an epoch; the answer says whether to go on",
              .request_schema = "TrialReport",
              .answer_schema = "ReportAnswer",
              .statuses = {200, 404, 409, 422}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials/{trial}/heartbeat",
              .access = http::Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return Heartbeat(service, r);
              }),
              .summary = "A sign of life between reports",
              .answer_schema = "Trial",
              .statuses = {200, 404, 409}});
  router.Add({.method = "POST",
              .pattern = "/v1/jobs/{id}/trials/{trial}/end",
              .access = http::Access::kWrite,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return EndTrial(service, metrics, r);
              }),
              .summary = "End a trial that will not report any more",
              .request_schema = "TrialEnd",
              .answer_schema = "Trial",
              .statuses = {200, 404, 422}});
}

}  // namespace zeus::server
