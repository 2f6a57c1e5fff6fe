#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/daemon/api/node_routes.h"

// Routes for schedulers and administrators.
namespace zeus::daemon {
namespace {

constexpr double kLongestMaintenance = 24 * 3600.0;

http::Answer ViewAnswer(Daemon& daemon, const std::string& id, int status) {
  const auto job = daemon.jobs().Find(id);
  if (!job) return ToAnswer(Error{ErrorCode::kNotFound, "the job has ended and is forgotten"});
  return http::JsonAnswer(status, ToJson(*job));
}

http::Answer PostJob(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  const auto spec = ParseJobSpec(body.value());
  if (!spec.ok()) return ToAnswer(spec.error());
  for (const std::string& device : spec.value().devices)
    if (const auto found = FindDevice(daemon, device); !found.ok())
      return ToAnswer(InvalidArgument("devices: " + found.error().message));
  daemon.BookEnergy();
  if (const Status registered = daemon.jobs().Register(spec.value()); !registered.ok()) {
    http::Answer answer = ToAnswer(registered.error());
    if (answer.status == 503) answer.status = 429;  // There are as many as there may be.
    return answer;
  }
  daemon.RecorderWanted();
  return ViewAnswer(daemon, spec.value().id, 201);
}

// `own`: the ids of the jobs that the caller belongs to. Users of pods have any number.
bool MaySee(const JobBook::View& job, const Call& call, const std::vector<std::string>& own) {
  if (call.grant.scopes.Has(Scope::kJob)) return true;
  if (call.caller->uid && call.caller->uid == job.spec.uid) return true;
  return std::ranges::find(own, job.spec.id) != own.end();
}

http::Answer GetJob(Daemon& daemon, const Call& call) {
  daemon.BookEnergy();
  const auto job = daemon.jobs().Find(call.request.parameters[0]);
  if (job && MaySee(*job, call, daemon.jobs().JobsOf(*call.caller)))
    return http::JsonAnswer(200, ToJson(*job));
  return ToAnswer(Error{ErrorCode::kNotFound,
                        fmt::format("there is no job {}", Quote(call.request.parameters[0]))});
}

http::Answer ListJobs(Daemon& daemon, const Call& call) {
  Json jobs = Json::array();
  const std::vector<std::string> own = daemon.jobs().JobsOf(*call.caller);
  for (const JobBook::View& job : daemon.jobs().List())
    if (MaySee(job, call, own)) jobs.push_back(ToJson(job));
  return http::JsonAnswer(200, {{"jobs", std::move(jobs)}});
}

http::Answer DeleteJob(Daemon& daemon, const Call& call) {
  const std::string& id = call.request.parameters[0];
  daemon.BookEnergy();
  if (const Status ended = daemon.jobs().End(id); !ended.ok()) return ToAnswer(ended.error());
  return ViewAnswer(daemon, id, 200);
}

http::Answer BeginMaintenance(Daemon& daemon, const Call& call) {
  const auto device = FindDevice(daemon, call.request.parameters[0]);
  if (!device.ok()) return ToAnswer(device.error());
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  double seconds = 600;
  FieldReader reader("a maintenance", body.value());
  reader.Read("seconds", seconds);
  if (const Status read = reader.Finish(); !read.ok()) return ToAnswer(read.error());
  if (!(seconds > 0 && seconds <= kLongestMaintenance))
    return ToAnswer(FieldError("seconds", "must be more than 0, and a day at most"));
  const Status begun = daemon.desk().BeginMaintenance(device.value()->id, Seconds(seconds));
  if (!begun.ok()) return ToAnswer(begun.error());
  return http::JsonAnswer(200, {{"device", device.value()->id}, {"seconds", seconds}});
}

http::Answer EndMaintenance(Daemon& daemon, const Call& call) {
  const auto device = FindDevice(daemon, call.request.parameters[0]);
  if (!device.ok()) return ToAnswer(device.error());
  const Status ended = daemon.desk().EndMaintenance(device.value()->id);
  if (!ended.ok()) return ToAnswer(ended.error());
  return http::JsonAnswer(200, {{"device", device.value()->id}});
}

http::Answer PostRestore(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  LeaseBook::Which which;
  bool all = false;
  FieldReader reader("a restore", body.value());
  reader.Read("device", which.device);
  reader.Read("subject", which.subject);
  reader.Read("all", all);
  if (const Status read = reader.Finish(); !read.ok()) return ToAnswer(read.error());
  if (!all && which.device.empty() && which.subject.empty())
    return ToAnswer(InvalidArgument("all: say which leases end: device, subject or all"));
  const std::size_t ended = daemon.book().EndAll(which, EndReason::kRevoked);
  return http::JsonAnswer(200, {{"ended", ended}});
}

}  // namespace

void AddOperatorRoutes(Daemon& daemon, RouteTable& table) {
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
       .pattern = "/v1/gpus/{uuid}/maintenance",
       .summary = "Put the knobs of a device back and let go of it for some time",
       .statuses = {200, 400, 404, 503},
       .request_schema = "Maintenance",
       .scope = Scope::kAdmin,
       .work = http::Work::kSlow},
      BeginMaintenance);
  add({.method = "DELETE",
       .pattern = "/v1/gpus/{uuid}/maintenance",
       .summary = "End a maintenance early",
       .statuses = {200, 404, 503},
       .scope = Scope::kAdmin,
       .work = http::Work::kSlow},
      EndMaintenance);
  add({.method = "POST",
       .pattern = "/v1/restore",
       .summary = "End the leases of a device, of a subject, or all",
       .statuses = {200, 400},
       .request_schema = "Restore",
       .scope = Scope::kAdmin},
      PostRestore);
}

}  // namespace zeus::daemon
