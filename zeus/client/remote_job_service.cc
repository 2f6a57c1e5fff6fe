#include "zeus/client/remote_job_service.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/requests.h"

namespace zeus {
namespace {

using Method = ServerCalls::Method;
using Reply = ServerCalls::Reply;

constexpr int kCreated = 201;

std::string JobPath(const std::string& job_id) {
  return "/v1/jobs/" + http::PercentEncoded(job_id);
}

std::string TrialPath(const std::string& job_id, std::int64_t trial) {
  return fmt::format("{}/trials/{}", JobPath(job_id), trial);
}

// With an id, a request can be repeated without beginning a second trial.
std::string NewRequestId() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

Result<std::unique_ptr<RemoteJobService>> RemoteJobService::Connect(const Options& options,
                                                                    Clock& clock) {
  ZEUS_TRY(std::unique_ptr<ServerCalls> calls, ServerCalls::Create(options, clock));
  return std::unique_ptr<RemoteJobService>(new RemoteJobService(std::move(calls)));
}

Result<RegisteredJob> RemoteJobService::Register(const JobSpec& spec) {
  // Without an id, a repeated request would register a second job.
  ZEUS_TRY(const Reply reply, spec.id.empty()
                                  ? calls_->AskOnce(Method::kPost, "/v1/jobs", ToJson(spec))
                                  : calls_->Ask(Method::kPost, "/v1/jobs", ToJson(spec)));
  ZEUS_TRY(Job job, calls_->Understood(wire::JobFromJson(reply.body)));
  return RegisteredJob{.job = std::move(job), .created = reply.status == kCreated};
}

Status RemoteJobService::Delete(const std::string& job_id) {
  ZEUS_TRY([[maybe_unused]] const Reply reply, calls_->Ask(Method::kDelete, JobPath(job_id)));
  return Ok();
}

Result<StartedTrial> RemoteJobService::StartTrial(const TrialRequest& request) {
  TrialRequest named = request;
  if (named.request_id.empty()) named.request_id = NewRequestId();
  ZEUS_TRY(const Reply reply,
           calls_->Ask(Method::kPost, JobPath(request.job_id) + "/trials", wire::ToJson(named)));
  return calls_->Understood(wire::StartedTrialFromJson(reply.body));
}

Result<ReportAnswer> RemoteJobService::Report(const TrialReport& report) {
  ZEUS_TRY(const Reply reply,
           calls_->Ask(Method::kPost, TrialPath(report.job_id, report.trial) + "/reports",
                       wire::ToJson(report)));
  return calls_->Understood(wire::ReportAnswerFromJson(reply.body));
}

Result<Trial> RemoteJobService::Heartbeat(const std::string& job_id, std::int64_t trial) {
  ZEUS_TRY(const Reply reply,
           calls_->Ask(Method::kPost, TrialPath(job_id, trial) + "/heartbeat", Json::object()));
  return calls_->Understood(wire::TrialFromJson(reply.body));
}

Result<Trial> RemoteJobService::EndTrial(const TrialEnd& end) {
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kPost, TrialPath(end.job_id, end.trial) + "/end",
                                          wire::ToJson(end)));
  return calls_->Understood(wire::TrialFromJson(reply.body));
}

Status RemoteJobService::LearnEpochCost(const EpochCostReport& report) {
  ZEUS_TRY(
      [[maybe_unused]] const Reply reply,
      calls_->Ask(Method::kPost, JobPath(report.job_id) + "/epoch-costs", wire::ToJson(report)));
  return Ok();
}

Result<Job> RemoteJobService::GetJob(const std::string& job_id) {
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, JobPath(job_id)));
  return calls_->Understood(wire::JobFromJson(reply.body));
}

Result<std::vector<Job>> RemoteJobService::ListJobs(const JobQuery& query) {
  std::string path = fmt::format("/v1/jobs?limit={}", query.limit);
  if (!query.after.empty()) path += "&after=" + http::PercentEncoded(query.after);
  if (query.label) path += "&label=" + http::PercentEncoded(*query.label);
  if (query.label && query.label_value) path += ":" + http::PercentEncoded(*query.label_value);
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, path));
  return calls_->Understood(wire::JobsFromJson(reply.body));
}

Result<Trial> RemoteJobService::GetTrial(const std::string& job_id, std::int64_t trial) {
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, TrialPath(job_id, trial)));
  return calls_->Understood(wire::TrialFromJson(reply.body));
}

Result<std::vector<Trial>> RemoteJobService::ListTrials(const std::string& job_id,
                                                        const TrialQuery& query) {
  std::string path =
      fmt::format("{}/trials?after={}&limit={}", JobPath(job_id), query.after, query.limit);
  if (query.status) path += fmt::format("&status={}", Name(*query.status));
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, path));
  return calls_->Understood(wire::TrialsFromJson(reply.body));
}

Result<JobArms> RemoteJobService::GetArms(const std::string& job_id, const std::string& gpu_model) {
  std::string path = JobPath(job_id) + "/arms";
  if (!gpu_model.empty()) path += "?gpu_model=" + http::PercentEncoded(gpu_model);
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, path));
  return calls_->Understood(wire::JobArmsFromJson(reply.body));
}

Result<JobSavings> RemoteJobService::GetSavings(const SavingsQuery& query) {
  std::string path = JobPath(query.job_id) + "/savings";
  if (!query.gpu_model.empty()) path += "?gpu_model=" + http::PercentEncoded(query.gpu_model);
  if (!query.baseline_job.empty())
    path += (query.gpu_model.empty() ? "?baseline=" : "&baseline=") +
            http::PercentEncoded(query.baseline_job);
  ZEUS_TRY(const Reply reply, calls_->Ask(Method::kGet, path));
  return calls_->Understood(wire::JobSavingsFromJson(reply.body));
}

Result<std::vector<JobEvent>> RemoteJobService::ListEvents(const std::string& job_id,
                                                           std::int64_t after, int limit) {
  ZEUS_TRY(const Reply reply,
           calls_->Ask(Method::kGet,
                       fmt::format("{}/events?after={}&limit={}", JobPath(job_id), after, limit)));
  return calls_->Understood(wire::EventsFromJson(reply.body));
}

}  // namespace zeus
