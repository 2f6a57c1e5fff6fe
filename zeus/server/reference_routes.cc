#include <fmt/format.h>

#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/server/routes.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/reference.h"
#include "zeus/wire/requests.h"

namespace zeus::server {
namespace {

namespace reference = wire::reference;

// Reads the job id of the query; sets `refusal` to the answer for a query without one.
Result<std::string> ReadJobId(const http::Request& request, std::optional<http::Answer>& refusal) {
  Result<std::string> id = RequireParameter(request.query, "job_id");
  if (!id.ok()) refusal = http::JsonAnswer(422, reference::ErrorToJson(id.error(), "query"));
  return id;
}

Result<http::Answer> RegisterReferenceJob(JobService& service, ServerMetrics& metrics,
                                          const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const JobSpec spec, reference::JobSpecFromJson(body));
  ZEUS_TRY(const RegisteredJob registered, service.Register(spec));
  if (registered.created) metrics.CountJob();
  return http::JsonAnswer(registered.created ? 201 : 200, reference::ToJson(registered.job.spec));
}

Result<http::Answer> Delete(JobService& service, const http::Request& request) {
  std::optional<http::Answer> refusal;
  const Result<std::string> id = ReadJobId(request, refusal);
  if (refusal) return *refusal;
  ZEUS_RETURN_IF_ERROR(service.Delete(id.value()));
  http::Answer answer = http::JsonAnswer(200, {{"job_id", id.value()}});
  answer.changed_topic = id.value();
  return answer;
}

// Begins a trial, although it is a GET: the reference's clients ask like this.
Result<http::Answer> Predict(JobService& service, ServerMetrics& metrics,
                             const http::Request& request) {
  std::optional<http::Answer> refusal;
  const Result<std::string> id = ReadJobId(request, refusal);
  if (refusal) return *refusal;
  const Result<StartedTrial> started =
      service.StartTrial({.job_id = id.value(), .lease = reference::kLease});
  if (!started.ok() && started.error().code == ErrorCode::kNotFound)
    return http::JsonAnswer(400, {{"detail", started.error().message}});
  if (!started.ok()) return started.error();
  const Trial& trial = started.value().trial;
  metrics.CountTrial(trial);
  http::Answer answer = http::JsonAnswer(
      200,
      reference::ToJson(reference::TrialId{
          .job_id = trial.job_id, .batch_size = trial.batch_size, .trial_number = trial.number}));
  answer.changed_topic = trial.job_id;
  return answer;
}

// Refuses a report with another batch size than that of the trial: the client is confused.
Result<Trial> FindTrial(JobService& service, const reference::TrialId& id) {
  ZEUS_TRY(Trial trial, service.GetTrial(id.job_id, id.trial_number));
  if (trial.batch_size != id.batch_size)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("batch_size: trial {} of job {} runs with {}, not with {}",
                             id.trial_number, id.job_id, trial.batch_size, id.batch_size)};
  return trial;
}

Result<http::Answer> ReportReferenceResult(JobService& service, ServerMetrics& metrics,
                                           const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const reference::TrainingResult result, reference::TrainingResultFromJson(body));
  const auto trial = FindTrial(service, {.job_id = result.report.job_id,
                                         .batch_size = result.batch_size,
                                         .trial_number = result.report.trial});
  if (!trial.ok()) return trial.error();
  ZEUS_TRY(const ReportAnswer reported, service.Report(result.report));
  metrics.CountTrial(reported.trial);
  http::Answer answer = http::JsonAnswer(200, reference::ToJson(reported));
  answer.changed_topic = result.report.job_id;
  return answer;
}

Result<http::Answer> EndReferenceTrial(JobService& service, ServerMetrics& metrics,
                                       const http::Request& request) {
  ZEUS_TRY(const Json body, wire::ParseBody(request.body));
  ZEUS_TRY(const reference::TrialId id, reference::TrialIdFromJson(body));
  if (const auto trial = FindTrial(service, id); !trial.ok()) return trial.error();
  ZEUS_TRY(const Trial trial, service.EndTrial({.job_id = id.job_id,
                                                .trial = id.trial_number,
                                                .status = TrialStatus::kFailed,
                                                .reason = "its client ended"}));
  metrics.CountTrial(trial);
  http::Answer answer = http::JsonAnswer(200, reference::ToJson(id));
  answer.changed_topic = id.job_id;
  return answer;
}

}  // namespace

void AddReferenceRoutes(const JobTenants& tenants, ServerMetrics& metrics, http::Router& router) {
  router.Add({.method = "POST",
              .pattern = "/jobs",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return RegisterReferenceJob(service, metrics, r);
              }),
              .summary = "Reference: register a job",
              .request_schema = "ReferenceJobSpec",
              .answer_schema = "ReferenceJobSpec",
              .statuses = {200, 201, 409, 422}});
  router.Add({.method = "DELETE",
              .pattern = "/jobs",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return Delete(service, r);
              }),
              .summary = "Reference: delete a job",
              .answer_schema = "ReferenceJobId",
              .statuses = {200, 404, 422},
              .query = {"job_id"}});
  router.Add({.method = "GET",
              .pattern = "/jobs/batch_size",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return Predict(service, metrics, r);
              }),
              .summary = "Reference: begin a trial, although it is a GET",
              .answer_schema = "ReferenceTrialId",
              .statuses = {200, 400, 422},
              .query = {"job_id"}});
  router.Add({.method = "POST",
              .pattern = "/report",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return ReportReferenceResult(service, metrics, r);
              }),
              .summary = "Reference: report an epoch",
              .request_schema = "ReferenceTrainingResult",
              .answer_schema = "ReferenceReportResponse",
              .statuses = {200, 404, 409, 422}});
  router.Add({.method = "PATCH",
              .pattern = "/trials",
              .access = http::Access::kWrite,
              .dialect = http::Dialect::kReference,
              .handler = tenants.Jobs([&](ScopedJobService& service, const http::Request& r) {
                return EndReferenceTrial(service, metrics, r);
              }),
              .summary = "Reference: end a trial",
              .request_schema = "ReferenceTrialId",
              .answer_schema = "ReferenceTrialId",
              .statuses = {200, 404, 422}});
}

}  // namespace zeus::server
