#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/daemon/job_book.h"
#include "zeus/daemon/job_book_found.h"

// The jobs of a book as JSON: in the state file, and as clients see them.
namespace zeus::daemon {
namespace {

Json ToJson(const std::map<std::string, Joules>& energies) {
  Json json = Json::object();
  for (const auto& [key, energy] : energies) json[key] = energy.value();
  return json;
}

Result<std::map<std::string, Joules>> ToEnergies(const std::string& field, const Json& json) {
  std::map<std::string, Joules> energies;
  for (const auto& [key, number] : json.items()) {
    if (!number.is_number()) return FieldError(field, "must be numbers");
    energies[key] = Joules(number.get<double>());
  }
  return energies;
}

}  // namespace

Json JobBook::StateOf(const Job& job) const {
  Json starts = Json::array();
  for (const ProcessIdentity& process : job.processes) starts.push_back(process.start_ticks);
  Json runs = Json::object();
  for (const auto& [step, run] : job.runs)
    runs[step] = {
        {"pid", run.process.pid}, {"start_ticks", run.process.start_ticks}, {"ended", run.ended}};
  Json shares = Json::object();
  for (const auto& [device, share] : job.shares)
    shares[device] = {
        {"joules", share.energy.value()}, {"sigma", share.sigma.value()}, {"shared", share.shared}};
  return {{"job", zeus::daemon::ToJson(job.spec)},
          {"start_ticks", std::move(starts)},
          {"since", ToExactText(job.since)},
          {"seen", job.seen},
          {"unrecorded", job.unrecorded.count()},
          {"shares", std::move(shares)},
          {"steps", ToJson(job.steps)},
          {"cpu_of_steps", ToJson(job.cpu_of_steps)},
          {"cpu_seconds", job.cpu_time.count()},
          {"cpu_joules", job.cpu_energy ? Json(job.cpu_energy->value()) : Json()},
          {"runs", std::move(runs)}};
}

// The file has the jobs and the counters of one moment, and then what happened: a job that begins
// or ends, with the counters at that moment. So a job costs one line, and what the devices used up
// to it belongs to the jobs before it, also when the daemon is killed right after.
void JobBook::Save() {
  if (!file_.keeps()) return;
  Json jobs = Json::array();
  for (const auto& [id, job] : jobs_)
    if (!job.ended) jobs.push_back(StateOf(job));
  const Json state = {{"format", "zeus.jobs/1"},
                      {"boot", options_.boot_clock().boot},
                      {"counters", ToJson(counters_)},
                      {"jobs", std::move(jobs)}};
  const auto written = file_.Replace(JsonText(state));
  if (!written.ok()) log::Warning("jobs will not survive a restart: {}", written.error().message);
}

void JobBook::SaveChange(Json change) {
  if (!file_.keeps()) return;
  change["counters"] = ToJson(counters_);
  if (!file_.Append(JsonText(change))) Save();
}

void JobBook::SaveEnergy() {
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(jobs_, [](const auto& entry) { return !entry.second.ended; })) Save();
}

void JobBook::SetCounter(const std::string& device, Joules counter) {
  const std::lock_guard lock(mutex_);
  counters_[device] = counter;
}

std::optional<Joules> JobBook::SavedCounter(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  const auto found = saved_counters_.find(device);
  return found == saved_counters_.end() ? std::nullopt : std::optional(found->second);
}

Result<JobBook::Job> JobBook::JobOfState(const Json& entry,
                                         const std::string& pid_namespace) const {
  Job job{.began = clock_.Now(), .last_seen = clock_.Now()};
  Json spec;
  Json shares = Json::object();
  Json runs = Json::object();
  std::string since;
  std::vector<std::uint64_t> starts;
  Json steps = Json::object();
  Json cpu_of_steps = Json::object();
  double unrecorded = 0;
  double cpu_seconds = 0;
  std::optional<double> cpu_joules;
  FieldReader reader("a job", entry);
  reader.Require("job", spec);
  reader.Require("start_ticks", starts);
  reader.Require("since", since);
  reader.Require("seen", job.seen);
  reader.Read("unrecorded", unrecorded);
  reader.Read("shares", shares);
  reader.Read("steps", steps);
  reader.Read("cpu_of_steps", cpu_of_steps);
  reader.Read("cpu_seconds", cpu_seconds);
  reader.Read("cpu_joules", cpu_joules);
  reader.Read("runs", runs);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  ZEUS_TRY(job.spec, ParseJobSpec(spec));
  ZEUS_TRY(job.since, ParseWallTime(since));
  if (starts.size() != job.spec.pids.size())
    return FieldError("start_ticks", "must be as many as there are pids");
  for (std::size_t i = 0; i < starts.size(); ++i)
    job.processes.push_back({job.spec.pids[i], starts[i], pid_namespace});
  // For display only: the time of day may have been set meanwhile.
  job.began -= std::max(Seconds(0), Seconds(clock_.WallNow() - job.since));
  for (const std::string& device : job.spec.devices) job.shares[device] = {.device = device};
  for (const auto& [device, share] : shares.items()) {
    const auto found = job.shares.find(device);
    if (found == job.shares.end()) continue;
    ZEUS_TRY(const double joules, GetField<double>(share, "joules"));
    ZEUS_TRY(const double sigma, GetField<double>(share, "sigma"));
    ZEUS_TRY(found->second.shared, GetField<bool>(share, "shared"));
    found->second.energy = Joules(joules);
    found->second.sigma = Joules(sigma);
  }
  for (const auto& [step, run] : runs.items()) {
    StepRun& known = job.runs[step];
    ZEUS_TRY(known.process.pid, GetField<std::int64_t>(run, "pid"));
    ZEUS_TRY(known.process.start_ticks, GetField<std::uint64_t>(run, "start_ticks"));
    ZEUS_TRY(known.ended, GetField<bool>(run, "ended"));
    known.process.pid_namespace = pid_namespace;
  }
  ZEUS_TRY(job.steps, ToEnergies("steps", steps));
  ZEUS_TRY(job.cpu_of_steps, ToEnergies("cpu_of_steps", cpu_of_steps));
  job.unrecorded = Seconds(unrecorded);
  job.cpu_time = Seconds(cpu_seconds);
  if (cpu_joules) job.cpu_energy = Joules(*cpu_joules);
  return job;
}

Status JobBook::Load() {
  const std::lock_guard lock(mutex_);
  if (!file_.keeps()) return Ok();
  const auto lines = file_.Read();
  if (!lines.ok() && lines.error().code == ErrorCode::kNotFound) return Ok();
  if (!lines.ok()) return lines.error();
  Status restored = Restore(lines.value());
  if (!restored.ok()) {
    jobs_.clear();
    saved_counters_.clear();
  }
  return restored;
}

Status JobBook::Restore(const std::vector<std::string>& lines) {
  ZEUS_TRY(const Json state, ParseJson(lines.empty() ? "" : lines.front()));
  ZEUS_TRY(const Json entries, GetField<Json>(state, "jobs"));
  ZEUS_TRY(const ProcessIdentity self, ThisProcess(options_.procfs));
  // Files of earlier versions have neither.
  const bool rebooted = state.contains("boot") && state["boot"] != Json(options_.boot_clock().boot);
  if (state.contains("counters")) {
    ZEUS_TRY(saved_counters_, ToEnergies("counters", state["counters"]));
  }
  for (const Json& entry : entries) {
    ZEUS_TRY(Job job, JobOfState(entry, self.pid_namespace));
    const std::string id = job.spec.id;
    jobs_.insert_or_assign(id, std::move(job));
  }
  for (std::size_t i = 1; i < lines.size(); ++i) {
    ZEUS_TRY(const Json change, ParseJson(lines[i]));
    ZEUS_RETURN_IF_ERROR(Repeat(change, self.pid_namespace));
  }
  if (!rebooted) return Ok();
  saved_counters_.clear();
  for (auto& [id, job] : jobs_) Finish(job, "unknown");
  return Ok();
}

// A change of an earlier run, in the order in which they happened.
Status JobBook::Repeat(const Json& change, const std::string& pid_namespace) {
  ZEUS_TRY(const Json counted, GetField<Json>(change, "counters"));
  ZEUS_TRY(auto counters, ToEnergies("counters", counted));
  for (const auto& [device, counter] : counters) {
    const auto before = saved_counters_.find(device);
    if (before != saved_counters_.end() && counter >= before->second)
      Split({.device = device, .energy = counter - before->second}, {});
  }
  saved_counters_ = std::move(counters);
  if (change.contains("register")) {
    ZEUS_TRY(Job job, JobOfState(change["register"], pid_namespace));
    const std::string id = job.spec.id;
    jobs_.insert_or_assign(id, std::move(job));
    return Ok();
  }
  ZEUS_TRY(const std::string id, GetField<std::string>(change, "end"));
  jobs_.erase(id);
  return Ok();
}

Json ToJson(const JobBook::View& job) {
  Json json = ToJson(job.spec);
  json["state"] = job.ended ? "ended" : "running";
  json["end_reason"] = job.ended ? Json(job.end_reason) : Json(nullptr);
  json["since"] = job.since;
  json["seconds"] = job.duration.count();
  json["unrecorded_seconds"] = job.unrecorded.count();
  Joules energy{};
  double variance = 0.0;
  Json devices = Json::array();
  for (const JobBook::DeviceShare& share : job.devices) {
    energy += share.energy;
    variance += share.sigma.value() * share.sigma.value();
    devices.push_back({{"device", share.device},
                       {"energy_joules", share.energy.value()},
                       {"sigma_joules", share.sigma.value()},
                       {"shared", share.shared}});
  }
  json["energy_joules"] = energy.value();
  json["sigma_joules"] = FiniteOrNull(std::sqrt(variance));
  json["shares"] = std::move(devices);
  Json steps = Json::object();
  for (const auto& [step, used] : job.steps) {
    if (step.empty()) continue;
    const auto cpu = job.cpu_of_steps.find(step);
    steps[step] = {
        {"energy_joules", used.value()},
        {"cpu_energy_joules", cpu == job.cpu_of_steps.end() ? Json() : Json(cpu->second.value())}};
  }
  json["steps"] = std::move(steps);
  json["cpu"] = {{"seconds", job.cpu_time.count()},
                 {"energy_joules", job.cpu_energy ? Json(job.cpu_energy->value()) : Json()}};
  return json;
}

}  // namespace zeus::daemon
