#include "zeus/daemon/job_book.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <system_error>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/daemon/cgroup.h"
#include "zeus/daemon/trusted_file.h"

namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kJobStepPeriod{2};
constexpr std::size_t kMostSteps = 256;  // A job has no more; the energy of others is booked to "".
constexpr std::size_t kStateLimit = std::size_t{64} * 1024 * 1024;

std::string CgroupOf(std::string_view pid, const fs::path& procfs) {
  const auto text = ReadSmallFile(procfs / pid / "cgroup");
  return text.ok() ? CgroupOfProcess(text.value()) : std::string();
}

// `place`: what the group belongs to.
bool IsPlace(const JobSpec& spec, const std::string& cgroup,
             const std::optional<JobIdentity>& place) {
  if (IsInCgroup(cgroup, spec.cgroup)) return true;
  return place && place->job == (spec.place.empty() ? spec.id : spec.place);
}

// The processes of a machine by their control groups.
std::map<std::string, std::vector<std::int64_t>> ProcessesByCgroup(const fs::path& procfs) {
  std::map<std::string, std::vector<std::int64_t>> processes;
  std::error_code failure;
  fs::directory_iterator entry(procfs, failure);
  for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    const auto pid = ParseInteger(name);
    if (pid.ok()) processes[CgroupOf(name, procfs)].push_back(pid.value());
  }
  return processes;
}

Seconds FromTicks(std::uint64_t ticks) {
  static const auto kPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return Seconds(static_cast<double>(ticks) / kPerSecond);
}

struct CpuTimeOf {
  std::uint64_t start = 0;
  Seconds used{};
};

// From /proc/PID/stat (proc(5)): fields 14 and 15 are the time used, 22 is the start. The name in
// field 2 may hold anything, so fields are counted from its end.
std::optional<CpuTimeOf> ReadCpuTime(std::int64_t pid, const fs::path& procfs) {
  constexpr std::size_t kUser = 11;
  constexpr std::size_t kSystem = 12;
  constexpr std::size_t kStart = 19;
  const auto text = ReadSmallFile(procfs / std::to_string(pid) / "stat");
  if (!text.ok() || text.value().rfind(')') == std::string::npos) return std::nullopt;
  std::istringstream rest(text.value().substr(text.value().rfind(')') + 1));
  std::vector<std::string> fields;
  for (std::string field; fields.size() <= kStart && rest >> field;) fields.push_back(field);
  if (fields.size() <= kStart) return std::nullopt;
  const auto user = ParseUnsigned(fields[kUser]);
  const auto system = ParseUnsigned(fields[kSystem]);
  const auto start = ParseUnsigned(fields[kStart]);
  if (!user.ok() || !system.ok() || !start.ok()) return std::nullopt;
  return CpuTimeOf{.start = start.value(), .used = FromTicks(user.value() + system.value())};
}

// The CPU time of all processes since the boot: the first line of /proc/stat without idle (4),
// waiting for disks (5), and time of guests (9, 10), which user time contains.
Seconds ReadBusyTime(const fs::path& procfs) {
  const auto line = ReadLine(procfs / "stat");
  if (!line.ok() || !line.value().starts_with("cpu ")) return Seconds(0);
  std::istringstream rest(line.value().substr(4));
  std::uint64_t busy = 0;
  std::uint64_t ticks = 0;
  for (int field = 1; field <= 8 && rest >> ticks; ++field)
    if (field != 4 && field != 5) busy += ticks;
  return FromTicks(busy);
}

double UsableWeight(double utilisation) {
  return std::isfinite(utilisation) ? std::clamp(utilisation, 0.0, 1e9) : 0.0;
}

}  // namespace

// The busy part of a slice is split in these proportions.
struct JobBook::Weights {
  struct OfJob {
    double total = 0.0;
    std::map<std::string, double> steps{};
  };
  std::map<const Job*, OfJob> jobs{};
  double others = 0.0;  // The weight of processes of no job.
  double unclear =
      0.0;  // That of processes that several jobs claim, as two containers of a pod do.

  double total() const {
    double sum = others + unclear;
    for (const auto& [job, weight] : jobs) sum += weight.total;
    return sum;
  }
};

JobBook::JobBook(const Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)) {}

Result<JobBook::Job> JobBook::NewJob(const JobSpec& spec) const {
  Job job{.spec = spec, .since = clock_.WallNow(), .began = clock_.Now()};
  job.last_seen = job.began;
  for (const std::int64_t pid : spec.pids) {
    auto process = ProcessWithPid(pid, options_.procfs);
    if (!process.ok())
      return Error{ErrorCode::kNotFound, fmt::format("pids: there is no process {}", pid)};
    job.processes.push_back(std::move(process).value());
  }
  job.seen = !job.processes.empty();
  for (const std::string& device : spec.devices) job.shares[device] = {.device = device};
  return job;
}

Status JobBook::Register(const JobSpec& spec) {
  ZEUS_TRY(Job job, NewJob(spec));
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(spec.id);
  if (found != jobs_.end() && !found->second.ended) {
    if (found->second.spec == spec && found->second.processes == job.processes) return Ok();
    return Error{ErrorCode::kConflict,
                 fmt::format("job {} is registered already: delete it first", Quote(spec.id))};
  }
  const auto running =
      std::ranges::count_if(jobs_, [](const auto& entry) { return !entry.second.ended; });
  if (static_cast<std::size_t>(running) >= options_.most_jobs)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("there are {} jobs already: delete those that have ended", running)};
  jobs_.insert_or_assign(spec.id, std::move(job));
  Save();
  return Ok();
}

bool JobBook::AnyRunning() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(jobs_, [](const auto& entry) { return !entry.second.ended; });
}

bool JobBook::Runs(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  return found != jobs_.end() && !found->second.ended;
}

Status JobBook::End(std::string_view id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end() || found->second.ended)
      return Error{ErrorCode::kNotFound, fmt::format("there is no job {}", Quote(id))};
    Finish(found->second, "deleted");
    Forget();
    Save();
  }
  if (options_.ended) options_.ended(std::string(id));
  return Ok();
}

std::optional<JobBook::View> JobBook::Find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  return ViewOf(found->second);
}

std::vector<JobBook::View> JobBook::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<View> views;
  for (const auto& [id, job] : jobs_) views.push_back(ViewOf(job));
  return views;
}

bool JobBook::Includes(const Job& job, const Caller& caller) const {
  if (job.ended || !caller.uid || (job.spec.uid && job.spec.uid != caller.uid)) return false;
  if (IsPlace(job.spec, caller.cgroup, JobOfCgroup(caller.cgroup))) return true;
  return caller.process && std::ranges::find(job.processes, *caller.process) != job.processes.end();
}

std::vector<std::string> JobBook::JobsOf(const Caller& caller) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_)
    if (Includes(job, caller)) ids.push_back(id);
  return ids;
}

std::set<std::string> JobBook::DevicesOf(const Caller& caller) const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> devices;
  for (const auto& [id, job] : jobs_)
    if (Includes(job, caller)) devices.insert(job.spec.devices.begin(), job.spec.devices.end());
  return devices;
}

// Energy.

struct JobBook::Found {
  std::string cgroup{};
  std::optional<ProcessIdentity> identity{};
};

std::map<std::int64_t, JobBook::Found> JobBook::Find(const Slice& slice) const {
  std::map<std::int64_t, Found> processes;
  for (const Slice::Sample& sample : slice.samples) {
    const auto [entry, fresh] = processes.try_emplace(sample.pid);
    if (!fresh) continue;
    entry->second.cgroup = CgroupOf(std::to_string(sample.pid), options_.procfs);
    auto identity = ProcessWithPid(sample.pid, options_.procfs);
    if (identity.ok()) entry->second.identity = std::move(identity).value();
  }
  return processes;
}

std::vector<JobBook::Job*> JobBook::JobsOn(const std::string& device) {
  std::vector<Job*> found;
  for (auto& [id, job] : jobs_)
    if (!job.ended && job.shares.contains(device)) found.push_back(&job);
  return found;
}

JobBook::Weights JobBook::Weigh(const Slice& slice, const std::map<std::int64_t, Found>& processes,
                                const std::vector<Job*>& jobs) const {
  Weights weights;
  for (const Slice::Sample& sample : slice.samples) {
    const double weight = UsableWeight(sample.utilisation);
    const Found& process = processes.at(sample.pid);
    const auto place = JobOfCgroup(process.cgroup);
    const auto owns = [&](const Job* job) {
      return IsPlace(job->spec, process.cgroup, place) ||
             (process.identity &&
              std::ranges::find(job->processes, *process.identity) != job->processes.end());
    };
    const auto owner = std::ranges::find_if(jobs, owns);
    if (owner == jobs.end()) {
      weights.others += weight;
      continue;
    }
    if (std::any_of(owner + 1, jobs.end(), owns)) {
      weights.unclear += weight;
      continue;
    }
    Weights::OfJob& own = weights.jobs[*owner];
    own.total += weight;
    own.steps[place && place->kind == JobKind::kSlurm ? place->step : ""] += weight;
  }
  return weights;
}

// Adds the part of a slice to a job, and to its steps in proportion to theirs.
void JobBook::Give(Job& job, const Slice& slice, double part,
                   const std::map<std::string, double>& steps) {
  const Joules energy = part * slice.energy;
  DeviceShare& share = job.shares.at(slice.device);
  share.energy += energy;
  share.sigma += part * slice.sigma;
  totals_[slice.device].of_jobs += energy;
  double weight = 0.0;
  for (const auto& [step, own] : steps) weight += own;
  if (!(weight > 0.0)) {
    job.steps[""] += energy;
    return;
  }
  for (const auto& [step, own] : steps) {
    const bool known = job.steps.contains(step) || job.steps.size() < kMostSteps;
    job.steps[known ? step : ""] += (own / weight) * energy;
  }
}

void JobBook::Book(const Slice& slice) {
  const auto usable = [](Joules energy) {
    return std::isfinite(energy.value()) && energy >= Joules(0.0);
  };
  if (!usable(slice.energy) || !usable(slice.sigma) || !usable(slice.idle)) return;
  const auto processes = Find(slice);
  const std::lock_guard lock(mutex_);
  DeviceTotal& total = totals_[slice.device];
  total.total += slice.energy;
  const std::vector<Job*> jobs = JobsOn(slice.device);
  if (jobs.empty()) {
    total.no_job += slice.energy;
    return;
  }
  Weights weights = Weigh(slice, processes, jobs);
  if (jobs.size() == 1) return Give(*jobs.front(), slice, 1.0, weights.jobs[jobs.front()].steps);
  const double all = weights.total();
  const bool busy = all > 0.0 && slice.energy > slice.idle;
  // Parts of the energy, so that they also split a sigma of a slice without energy.
  const double busy_part = busy ? (slice.energy - slice.idle) / slice.energy : 0.0;
  const double unclear_part = busy ? busy_part * weights.unclear / all : 0.0;
  total.shared_idle += (1.0 - busy_part + unclear_part) * slice.energy;
  for (Job* job : jobs) job->shares.at(slice.device).shared = true;
  if (!busy) return;
  for (Job* job : jobs) {
    const Weights::OfJob& own = weights.jobs[job];
    if (own.total > 0.0) Give(*job, slice, busy_part * own.total / all, own.steps);
  }
  total.no_job += (busy_part * weights.others / all) * slice.energy;
}

std::map<std::string, JobBook::DeviceTotal> JobBook::Totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

// Life and end.

struct JobBook::Watched {
  JobSpec spec{};
  std::vector<ProcessIdentity> processes{};
  TimePoint began{};
};

std::vector<JobBook::Watched> JobBook::Running() const {
  const std::lock_guard lock(mutex_);
  std::vector<Watched> running;
  for (const auto& [id, job] : jobs_)
    if (!job.ended) running.push_back({job.spec, job.processes, job.began});
  return running;
}

// The processes of each job by pid and start, with the CPU time that they have used.
struct JobBook::Look {
  std::map<std::string, std::map<std::pair<std::int64_t, std::uint64_t>, Seconds>> jobs{};
  std::set<std::string> occupied{};
  Seconds busy{};

  void Add(const std::string& job, std::int64_t pid, const fs::path& procfs) {
    if (const auto time = ReadCpuTime(pid, procfs)) jobs[job][{pid, time->start}] = time->used;
  }
};

JobBook::Look JobBook::LookAt(const std::vector<Watched>& watched) const {
  Look look;
  if (watched.empty()) return look;
  look.busy = ReadBusyTime(options_.procfs);
  for (const auto& [cgroup, pids] : ProcessesByCgroup(options_.procfs)) {
    const auto place = JobOfCgroup(cgroup);
    std::vector<const Watched*> inside;
    for (const Watched& job : watched)
      if (IsPlace(job.spec, cgroup, place)) inside.push_back(&job);
    for (const Watched* job : inside) look.occupied.insert(job->spec.id);
    // Time that several jobs claim is nobody's: it would be counted twice.
    if (inside.size() != 1) continue;
    for (const std::int64_t pid : pids) look.Add(inside.front()->spec.id, pid, options_.procfs);
  }
  for (const Watched& job : watched)
    for (const ProcessIdentity& process : job.processes)
      if (IsRunning(process, options_.procfs)) {
        look.occupied.insert(job.spec.id);
        look.Add(job.spec.id, process.pid, options_.procfs);
      }
  return look;
}

// A process that was there before its job counts from the first look at it.
void JobBook::CountCpu(Job& job, const Look& look, const std::string& id) {
  const bool first = !std::exchange(job.looked_at, true);
  const auto found = look.jobs.find(id);
  if (found == look.jobs.end()) return;
  Seconds used{};
  for (const auto& [process, time] : found->second) {
    const auto before = job.cpu_of.find(process);
    if (before != job.cpu_of.end())
      used += std::max(Seconds(0), time - before->second);
    else if (!first)
      used += time;
  }
  job.cpu_of = found->second;
  job.cpu_time += used;
  job.cpu_now = used;
}

void JobBook::SplitCpu(const Look& look) {
  const Seconds busy = look.busy - std::exchange(busy_, look.busy);
  const auto energy = std::exchange(cpu_energy_, std::nullopt);
  for (auto& [id, job] : jobs_) {
    const Seconds used = std::exchange(job.cpu_now, Seconds(0));
    if (!energy || job.ended) continue;
    // Ticks of the machine and of its processes are not counted at the same moments.
    const double share = busy > Seconds(0) ? std::min(1.0, used / busy) : 0.0;
    job.cpu_energy = job.cpu_energy.value_or(Joules()) + share * *energy;
  }
}

void JobBook::BookCpu(Joules energy) {
  if (!std::isfinite(energy.value()) || energy < Joules()) return;
  const std::lock_guard lock(mutex_);
  cpu_energy_ = cpu_energy_.value_or(Joules()) + energy;
}

std::set<std::string> JobBook::DevicesWithSamples() const {
  std::set<std::string> devices;
  std::set<std::string> taken;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job.ended) continue;
    for (const std::string& device : job.spec.devices)
      if (!taken.insert(device).second || id.starts_with("slurm:")) devices.insert(device);
  }
  return devices;
}

TimePoint JobBook::Step() {
  const TimePoint looked = clock_.Now();
  const std::vector<Watched> watched = Running();
  const Look look = LookAt(watched);
  std::vector<std::string> ended;
  {
    const std::lock_guard lock(mutex_);
    for (const Watched& one : watched) {
      const auto found = jobs_.find(one.spec.id);
      // Another job may have taken the id meanwhile.
      if (found == jobs_.end() || found->second.ended || found->second.began != one.began) continue;
      Job& job = found->second;
      CountCpu(job, look, one.spec.id);
      if (look.occupied.contains(one.spec.id)) {
        job.seen = true;
        job.last_seen = looked;
        continue;
      }
      if (looked - job.last_seen < (job.seen ? options_.absence : options_.never_seen)) continue;
      Finish(job, "nobody left");
      ended.push_back(one.spec.id);
    }
    SplitCpu(look);
    Forget();
    if (!ended.empty()) Save();
  }
  if (options_.ended)
    for (const std::string& id : ended) options_.ended(id);
  return clock_.Now() + kJobStepPeriod;
}

void JobBook::Finish(Job& job, std::string reason) {
  job.ended = clock_.Now();
  job.end_reason = std::move(reason);
}

void JobBook::Forget() {
  std::erase_if(jobs_, [&](const auto& entry) {
    return entry.second.ended && clock_.Now() - *entry.second.ended >= options_.ended_kept;
  });
  std::vector<std::pair<TimePoint, std::string>> ended;
  for (const auto& [id, job] : jobs_)
    if (job.ended) ended.emplace_back(*job.ended, id);
  if (ended.size() <= options_.most_jobs) return;
  std::ranges::sort(ended);
  ended.resize(ended.size() - options_.most_jobs);
  for (const auto& [time, id] : ended) jobs_.erase(id);
}

JobBook::View JobBook::ViewOf(const Job& job) const {
  View view{.spec = job.spec,
            .ended = job.ended.has_value(),
            .end_reason = job.end_reason,
            .since = zeus::ToText(job.since),
            .duration = job.ended.value_or(clock_.Now()) - job.began,
            .steps = job.steps,
            .cpu_time = job.cpu_time,
            .cpu_energy = job.cpu_energy};
  for (const auto& [device, share] : job.shares) view.devices.push_back(share);
  return view;
}

// Survival.

void JobBook::Save() const {
  if (options_.state_file.empty()) return;
  Json jobs = Json::array();
  for (const auto& [id, job] : jobs_) {
    if (job.ended) continue;
    Json starts = Json::array();
    for (const ProcessIdentity& process : job.processes) starts.push_back(process.start_ticks);
    jobs.push_back({{"job", ToJson(job.spec)},
                    {"start_ticks", std::move(starts)},
                    {"since", ToExactText(job.since)},
                    {"seen", job.seen}});
  }
  const Json state = {{"format", "zeus.jobs/1"}, {"jobs", std::move(jobs)}};
  const auto written =
      WriteStateFile(options_.state_file, JsonText(state), Durability::kSurvivesProcess);
  if (!written.ok()) log::Warning("jobs will not survive a restart: {}", written.error().message);
}

Status JobBook::Load() {
  if (options_.state_file.empty()) return Ok();
  const auto text = ReadStateFile(options_.state_file, kStateLimit);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return Ok();
  if (!text.ok()) return text.error();
  ZEUS_TRY(const Json state, ParseJson(text.value()));
  ZEUS_TRY(const Json entries, GetField<Json>(state, "jobs"));
  ZEUS_TRY(const ProcessIdentity self, ThisProcess(options_.procfs));
  std::map<std::string, Job, std::less<>> jobs;
  for (const Json& entry : entries) {
    Job job{.began = clock_.Now(), .last_seen = clock_.Now()};
    Json spec;
    std::string since;
    std::vector<std::uint64_t> starts;
    FieldReader reader("a job", entry);
    reader.Require("job", spec);
    reader.Require("start_ticks", starts);
    reader.Require("since", since);
    reader.Require("seen", job.seen);
    ZEUS_RETURN_IF_ERROR(reader.Finish());
    ZEUS_TRY(job.spec, ParseJobSpec(spec));
    ZEUS_TRY(job.since, ParseWallTime(since));
    if (starts.size() != job.spec.pids.size())
      return FieldError("start_ticks", "must be as many as there are pids");
    for (std::size_t i = 0; i < starts.size(); ++i)
      job.processes.push_back({job.spec.pids[i], starts[i], self.pid_namespace});
    // For display only: the time of day may have been set meanwhile.
    job.began -= std::max(Seconds(0), Seconds(clock_.WallNow() - job.since));
    for (const std::string& device : job.spec.devices) job.shares[device] = {.device = device};
    jobs.insert_or_assign(job.spec.id, std::move(job));
  }
  const std::lock_guard lock(mutex_);
  jobs_ = std::move(jobs);
  return Ok();
}

Json ToJson(const JobBook::View& job) {
  Json json = ToJson(job.spec);
  json["state"] = job.ended ? "ended" : "running";
  json["end_reason"] = job.ended ? Json(job.end_reason) : Json(nullptr);
  json["since"] = job.since;
  json["seconds"] = job.duration.count();
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
  for (const auto& [step, used] : job.steps)
    if (!step.empty()) steps[step] = {{"energy_joules", used.value()}};
  json["steps"] = std::move(steps);
  json["cpu"] = {{"seconds", job.cpu_time.count()},
                 {"energy_joules", job.cpu_energy ? Json(job.cpu_energy->value()) : Json()}};
  return json;
}

}  // namespace zeus::daemon
