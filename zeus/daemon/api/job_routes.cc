#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/daemon/api/node_routes.h"

// Routes for schedulers: jobs, their steps, and their energy.
namespace zeus::daemon {
namespace {

// The job with the present power of its devices; those that other jobs have, too, count as theirs.
Json JobDocument(Daemon& daemon, const JobBook::View& job) {
  Json json = ToJson(job);
  json["power_watts"] = nullptr;
  if (job.ended) return json;
  double watts = 0;
  for (const JobBook::DeviceShare& share : job.devices) {
    const NodeDevice* device = daemon.devices().Find(share.device);
    if (device == nullptr || !device->recorded) return json;
    const auto power = daemon.recorder().monitor().Now(*device->recorded).power;
    if (!power.ok()) return json;
    watts += power.value().value();
  }
  json["power_watts"] = FiniteOrNull(watts);
  return json;
}

http::Answer ToJobAnswer(const Error& error) {
  http::Answer answer = ToAnswer(error);
  if (answer.status == 503) answer.status = 429;  // There are as many as there may be.
  return answer;
}

http::Answer ViewAnswer(Daemon& daemon, const std::string& id, int status) {
  const auto job = daemon.jobs().Find(id);
  if (!job) return ToAnswer(Error{ErrorCode::kNotFound, "the job has ended and is forgotten"});
  return http::JsonAnswer(status, JobDocument(daemon, *job));
}

http::Answer PostJob(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  const auto spec = ParseJobSpec(body.value());
  if (!spec.ok()) return ToAnswer(spec.error());
  const auto begun = daemon.BeginJob(*call.caller, call.grant, spec.value());
  if (!begun.ok()) return ToJobAnswer(begun.error());
  const auto job = daemon.jobs().Find(begun.value().id);
  if (!job) return ToAnswer(Error{ErrorCode::kNotFound, "the job has ended and is forgotten"});
  Json answer = JobDocument(daemon, *job);
  const std::string& refused = begun.value().limit_refused;
  answer["limit_refused"] = refused.empty() ? Json() : Json(refused);
  return http::JsonAnswer(201, answer);
}

// `own`: the ids of the jobs that the caller belongs to. Users of pods have any number.
bool MaySee(const JobBook::View& job, const Call& call, const std::vector<std::string>& own) {
  if (call.grant.scopes.Has(Scope::kJob)) return true;
  if (call.caller->uid && call.caller->uid == job.spec.uid) return true;
  return std::ranges::find(own, job.spec.id) != own.end();
}

http::Answer GetJob(Daemon& daemon, const Call& call) {
  daemon.BookEnergy(Daemon::Booking::kWhatIsKnown);
  const auto job = daemon.jobs().Find(call.request.parameters[0]);
  if (job && MaySee(*job, call, daemon.jobs().JobsOf(*call.caller)))
    return http::JsonAnswer(200, JobDocument(daemon, *job));
  return ToAnswer(Error{ErrorCode::kNotFound,
                        fmt::format("there is no job {}", Quote(call.request.parameters[0]))});
}

http::Answer ListJobs(Daemon& daemon, const Call& call) {
  daemon.BookEnergy(Daemon::Booking::kWhatIsKnown);
  Json devices = Json::array();
  for (const auto& [device, total] : daemon.jobs().Totals()) {
    const NodeDevice* known = daemon.devices().Find(device);
    const bool gpu = known != nullptr && known->gpu != nullptr;
    if (!call.grant.scopes.Has(gpu ? Scope::kGpuRead : Scope::kCpuRead)) continue;
    devices.push_back({{"device", device},
                       {"energy_joules", total.total.value()},
                       {"of_jobs_joules", total.of_jobs.value()},
                       {"shared_idle_joules", total.shared_idle.value()},
                       {"no_job_joules", total.no_job.value()}});
  }
  Json jobs = Json::array();
  const std::vector<std::string> own = daemon.jobs().JobsOf(*call.caller);
  for (const JobBook::View& job : daemon.jobs().List())
    if (MaySee(job, call, own)) jobs.push_back(JobDocument(daemon, job));
  return http::JsonAnswer(200, {{"jobs", std::move(jobs)}, {"devices", std::move(devices)}});
}

http::Answer DeleteJob(Daemon& daemon, const Call& call) {
  const std::string& id = call.request.parameters[0];
  daemon.BookEnergy();
  if (const Status ended = daemon.jobs().End(id); !ended.ok()) return ToAnswer(ended.error());
  return ViewAnswer(daemon, id, 200);
}

http::Answer PostStep(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  const auto step = ParseStepSpec(body.value());
  if (!step.ok()) return ToAnswer(step.error());
  const std::string& id = call.request.parameters[0];
  const Status begun = daemon.BeginStep(*call.caller, call.grant, id, step.value());
  if (!begun.ok()) return ToJobAnswer(begun.error());
  return ViewAnswer(daemon, id, 200);
}

http::Answer DeleteStep(Daemon& daemon, const Call& call) {
  const std::string& id = call.request.parameters[0];
  daemon.BookEnergy();
  const Status ended = daemon.jobs().EndStep(id, call.request.parameters[1]);
  return ended.ok() ? ViewAnswer(daemon, id, 200) : ToAnswer(ended.error());
}

}  // namespace

void AddJobRoutes(Daemon& daemon, RouteTable& table) {
  const auto add = [&daemon, &table](NodeRoute route, auto handler) {
    route.handler = [&daemon, handler](const Call& call) { return handler(daemon, call); };
    table.Add(std::move(route));
  };
  add({.method = "POST",
       .pattern = "/v1/jobs",
       .summary = "Register a job with its devices; their energy is booked to it",
       .statuses = {201, 400, 404, 409},
       .request_schema = "JobSpec",
       .answer_schema = "Job",
       .scope = Scope::kJob},
      PostJob);
  add({.method = "GET",
       .pattern = "/v1/jobs",
       .summary = "The caller's jobs; all for schedulers",
       .answer_schema = "Jobs"},
      ListJobs);
  add({.method = "GET",
       .pattern = "/v1/jobs/{id}",
       .summary = "A job and its energy",
       .statuses = {200, 404},
       .answer_schema = "Job"},
      GetJob);
  add({.method = "DELETE",
       .pattern = "/v1/jobs/{id}",
       .summary = "End a job, and the leases that it holds",
       .statuses = {200, 404},
       .answer_schema = "Job",
       .scope = Scope::kJob},
      DeleteJob);
  add({.method = "POST",
       .pattern = "/v1/jobs/{id}/steps",
       .summary = "A process, with those that it starts, runs a step of a job from now on",
       .statuses = {200, 400, 404},
       .request_schema = "StepSpec",
       .answer_schema = "Job",
       .scope = Scope::kJob},
      PostStep);
  add({.method = "DELETE",
       .pattern = "/v1/jobs/{id}/steps/{step}",
       .summary = "A step has ended; the job goes on",
       .statuses = {200, 404},
       .answer_schema = "Job",
       .scope = Scope::kJob},
      DeleteStep);
}

}  // namespace zeus::daemon
