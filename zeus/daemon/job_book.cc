#include "zeus/daemon/job_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/daemon/cgroup.h"
#include "zeus/daemon/job_book_found.h"
#include "zeus/daemon/job_processes.h"

namespace zeus::daemon {
namespace {

constexpr Seconds kJobStepPeriod{2};
constexpr int kLongestParentage = 64;
constexpr std::size_t kMostSteps = 256;  // A job has no more; the energy of others is booked to "".
constexpr const char* kNobodyLeft = "nobody left";

// `place`: what the group belongs to.
bool IsPlace(const JobSpec& spec, const std::string& cgroup,
             const std::optional<JobIdentity>& place) {
  if (IsInCgroup(cgroup, spec.cgroup)) return true;
  return place && IsGroupOfJob(*place, spec.place.empty() ? spec.id : spec.place);
}

// Whether both describe one run of a job: labels but that of restarts are for display.
bool IsSameRun(const JobSpec& one, const JobSpec& other) {
  const auto restarts = [](const JobSpec& spec) {
    const auto found = spec.labels.find("restarts");
    return found == spec.labels.end() ? std::string() : found->second;
  };
  return one.uid == other.uid && one.devices == other.devices && one.cgroup == other.cgroup &&
         one.place == other.place && one.pids == other.pids &&
         one.power_limit == other.power_limit && restarts(one) == restarts(other);
}

bool IsRestarted(const JobSpec& before, const JobSpec& now) {
  const auto was = before.labels.find("restarts");
  const auto is = now.labels.find("restarts");
  return was != before.labels.end() && is != now.labels.end() && was->second != is->second;
}

// Steps of srun are numbered; others wait for them or contain them.
bool IsNumbered(const std::string& step) {
  return !step.empty() && step[0] >= '0' && step[0] <= '9';
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
    : clock_(clock), options_(std::move(options)), file_(options_.state_file) {}

Result<JobBook::Job> JobBook::NewJob(const JobSpec& spec, std::optional<WallTime> begun) const {
  Job job{.spec = spec, .since = clock_.WallNow(), .began = clock_.Now()};
  job.last_seen = job.began;
  if (begun && *begun < job.since) {
    job.unrecorded = Seconds(job.since - *begun);
    job.since = *begun;
    job.began -= job.unrecorded;
  }
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

void JobBook::Revive(Job& job) {
  job.ended.reset();
  job.end_reason.clear();
  job.last_seen = clock_.Now();
}

Result<JobBook::Registered> JobBook::Register(const JobSpec& spec, std::optional<WallTime> begun) {
  ZEUS_TRY(Job job, NewJob(spec, begun));
  std::optional<std::string> replaced;
  {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(spec.id);
    const bool same = found != jobs_.end() && IsSameRun(found->second.spec, spec) &&
                      found->second.processes == job.processes;
    if (found != jobs_.end() && !found->second.ended) {
      if (same) return Registered::kAlready;
      if (!IsRestarted(found->second.spec, spec))
        return Error{ErrorCode::kConflict,
                     fmt::format("job {} is registered already: delete it first", Quote(spec.id))};
      replaced = spec.id;
    } else if (same && found->second.end_reason == kNobodyLeft) {
      Revive(found->second);
      SaveChange({{"register", StateOf(found->second)}});
      return Registered::kRevived;
    }
    const auto running =
        std::ranges::count_if(jobs_, [](const auto& entry) { return !entry.second.ended; });
    if (static_cast<std::size_t>(running) >= options_.most_jobs)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("there are {} jobs already: delete those that have ended", running)};
    const auto entry = jobs_.insert_or_assign(spec.id, std::move(job)).first;
    SaveChange({{"register", StateOf(entry->second)}});
  }
  if (replaced && options_.ended) options_.ended(*replaced);
  return Registered::kAnew;
}

Result<JobBook::Registered> JobBook::BeginStep(std::string_view id, const StepSpec& step) {
  auto process = ProcessWithPid(step.pid, options_.procfs);
  if (!process.ok())
    return Error{ErrorCode::kNotFound, fmt::format("pid: there is no process {}", step.pid)};
  const std::lock_guard lock(mutex_);
  const auto found = FindJob(id);
  if (found == jobs_.end() || (found->second.ended && found->second.end_reason != kNobodyLeft))
    return Error{ErrorCode::kNotFound, fmt::format("there is no job {}", Quote(id))};
  Job& job = found->second;
  const auto run = job.runs.find(step.step);
  if (run != job.runs.end() && run->second.process == process.value() && !job.ended)
    return Registered::kAlready;
  if (run == job.runs.end() && job.runs.size() >= kMostSteps)
    return Error{ErrorCode::kUnavailable, fmt::format("the job has {} steps already", kMostSteps)};
  const Registered registered = job.ended ? Registered::kRevived : Registered::kAnew;
  if (job.ended) Revive(job);
  job.runs[step.step] = {.process = std::move(process).value()};
  job.steps.try_emplace(step.step);  // Its energy so far is 0, not unknown.
  job.spec.labels.insert(step.labels.begin(), step.labels.end());
  job.seen = true;
  job.last_seen = clock_.Now();
  Save();
  return registered;
}

Status JobBook::EndStep(std::string_view id, std::string_view step) {
  const std::lock_guard lock(mutex_);
  const auto found = FindJob(id);
  if (found == jobs_.end())
    return Error{ErrorCode::kNotFound, fmt::format("there is no job {}", Quote(id))};
  const auto run = found->second.runs.find(std::string(step));
  if (run == found->second.runs.end())
    return Error{ErrorCode::kNotFound, fmt::format("the job has no step {}", Quote(step))};
  run->second.ended = true;
  Save();
  return Ok();
}

std::map<std::string, JobBook::Job, std::less<>>::iterator JobBook::FindJob(std::string_view id) {
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) return found;
  auto best = jobs_.end();
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job)
    if (IsShortFor(id, job->first) && (best == jobs_.end() || !job->second.ended)) best = job;
  return best;
}

std::map<std::string, JobBook::Job, std::less<>>::const_iterator JobBook::FindJob(
    std::string_view id) const {
  return const_cast<JobBook*>(this)->FindJob(id);
}

bool JobBook::AnyRunning() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(jobs_, [](const auto& entry) { return !entry.second.ended; });
}

bool JobBook::Runs(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = FindJob(id);
  return found != jobs_.end() && !found->second.ended;
}

Status JobBook::End(std::string_view id) {
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    const auto found = FindJob(id);
    if (found == jobs_.end() || found->second.ended)
      return Error{ErrorCode::kNotFound, fmt::format("there is no job {}", Quote(id))};
    name = found->first;
    Finish(found->second, "deleted");
    Forget();
    SaveChange({{"end", name}});
  }
  if (options_.ended) options_.ended(name);
  return Ok();
}

std::optional<JobBook::View> JobBook::Find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = FindJob(id);
  if (found == jobs_.end()) return std::nullopt;
  return ViewOf(found->second);
}

std::vector<JobBook::View> JobBook::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<View> views;
  for (const auto& [id, job] : jobs_) views.push_back(ViewOf(job));
  return views;
}

bool JobBook::Includes(const Job& job, const Caller& caller,
                       const std::vector<ProcessIdentity>& ancestry) const {
  if (job.ended || !caller.uid || (job.spec.uid && job.spec.uid != caller.uid)) return false;
  if (IsPlace(job.spec, caller.cgroup, JobOfCgroup(caller.cgroup))) return true;
  if (caller.process && std::ranges::find(job.processes, *caller.process) != job.processes.end())
    return true;
  return std::ranges::any_of(job.runs, [&](const auto& run) {
    return std::ranges::find(ancestry, run.second.process) != ancestry.end();
  });
}

std::vector<ProcessIdentity> JobBook::AncestryOf(const Caller& caller) const {
  return caller.process ? Ancestry(*caller.process, options_.procfs)
                        : std::vector<ProcessIdentity>();
}

std::vector<std::string> JobBook::JobsOf(const Caller& caller) const {
  const auto ancestry = AncestryOf(caller);
  const std::lock_guard lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_)
    if (Includes(job, caller, ancestry)) ids.push_back(id);
  return ids;
}

std::set<std::string> JobBook::DevicesOf(const Caller& caller) const {
  const auto ancestry = AncestryOf(caller);
  const std::lock_guard lock(mutex_);
  std::set<std::string> devices;
  for (const auto& [id, job] : jobs_)
    if (Includes(job, caller, ancestry))
      devices.insert(job.spec.devices.begin(), job.spec.devices.end());
  return devices;
}

// Energy.

std::map<std::int64_t, JobBook::Found> JobBook::Find(const Slice& slice) const {
  std::map<std::int64_t, Found> processes;
  for (const Slice::Sample& sample : slice.samples) {
    const auto [entry, fresh] = processes.try_emplace(sample.pid);
    if (!fresh) continue;
    entry->second.cgroup = CgroupOfPid(sample.pid, options_.procfs);
    const auto identity = ProcessWithPid(sample.pid, options_.procfs);
    if (identity.ok()) entry->second.ancestry = Ancestry(identity.value(), options_.procfs);
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
  const auto run_of = [](const Job& job, const Found& process) {
    return std::ranges::find_if(job.runs,
                                [&](const auto& run) { return process.Has(run.second.process); });
  };
  for (const Slice::Sample& sample : slice.samples) {
    const double weight = UsableWeight(sample.utilisation);
    const Found& process = processes.at(sample.pid);
    const auto place = JobOfCgroup(process.cgroup);
    const auto owns = [&](const Job* job) {
      return IsPlace(job->spec, process.cgroup, place) ||
             run_of(*job, process) != job->runs.end() ||
             (!process.ancestry.empty() &&
              std::ranges::find(job->processes, process.ancestry.front()) != job->processes.end());
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
    const auto run = run_of(**owner, process);
    std::string step = run != (*owner)->runs.end() ? run->first : "";
    if (place && place->kind == JobKind::kSlurm) step = place->step;
    own.steps[step] += weight;
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
  const auto split = StepsOf(job, steps);
  double weight = 0.0;
  for (const auto& [step, own] : split) weight += own;
  for (const auto& [step, own] : split) {
    const bool known = job.steps.contains(step) || job.steps.size() < kMostSteps;
    job.steps[known ? step : ""] += (own / weight) * energy;
  }
}

// The positive weights by which a job's steps share its energy. Where samples do not tell, those of
// srun that run share it as they did when samples told; without such a step it is that of another
// that runs.
std::map<std::string, double> JobBook::StepsOf(Job& job,
                                               const std::map<std::string, double>& sampled) {
  std::map<std::string, double> weights;
  for (const auto& [step, own] : sampled)
    if (own > 0.0 && (!step.empty() || job.runs.empty())) weights[step] = own;
  if (!weights.empty()) return job.step_weights = weights;
  for (const auto& [step, run] : job.runs)
    if (!run.ended && IsNumbered(step)) weights[step] = 0.0;
  double known = 0.0;
  for (auto& [step, own] : weights) {
    const auto before = job.step_weights.find(step);
    if (before != job.step_weights.end()) own = before->second;
    known += own;
  }
  if (!(known > 0.0))
    for (auto& [step, own] : weights) own = 1.0;
  std::erase_if(weights, [](const auto& entry) { return !(entry.second > 0.0); });
  if (!weights.empty()) return weights;
  for (const char* step : {"batch", "interactive", "extern"}) {
    const auto run = job.runs.find(step);
    if (run != job.runs.end() && !run->second.ended) return {{step, 1.0}};
  }
  return {{"", 1.0}};
}

void JobBook::Book(const Slice& slice) {
  const auto usable = [](Joules energy) {
    return std::isfinite(energy.value()) && energy >= Joules(0.0);
  };
  if (!usable(slice.energy) || !usable(slice.sigma) || !usable(slice.idle)) return;
  const auto processes = Find(slice);
  const std::lock_guard lock(mutex_);
  Split(slice, processes);
}

void JobBook::Split(const Slice& slice, const std::map<std::int64_t, Found>& processes) {
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
  std::vector<ProcessIdentity> runs{};
  TimePoint began{};
};

std::vector<JobBook::Watched> JobBook::Running() const {
  const std::lock_guard lock(mutex_);
  std::vector<Watched> running;
  for (const auto& [id, job] : jobs_)
    if (!job.ended) {
      Watched watched{.spec = job.spec, .processes = job.processes, .began = job.began};
      for (const auto& [step, run] : job.runs)
        if (!run.ended) watched.runs.push_back(run.process);
      running.push_back(std::move(watched));
    }
  return running;
}

// The processes of each job by pid and start, with the CPU time that they have used.
struct JobBook::Look {
  std::map<std::string, std::map<std::pair<std::int64_t, std::uint64_t>, Seconds>> jobs{};
  std::set<std::string> occupied{};
  Seconds busy{};

  void Add(const std::string& job, std::int64_t pid, const std::filesystem::path& procfs) {
    if (const auto facts = ReadProcessFacts(pid, procfs))
      jobs[job][{pid, facts->start_ticks}] = facts->cpu_time;
  }
};

JobBook::Look JobBook::LookAt(const std::vector<Watched>& watched) const {
  Look look;
  if (watched.empty()) return look;
  look.busy = ReadBusyTime(options_.procfs);
  const auto groups = ProcessesByCgroup(options_.procfs);
  for (const auto& [cgroup, pids] : groups) {
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
  LookAtRuns(watched, groups, look);
  return look;
}

// Steps are the processes that run them, and all that those have started.
void JobBook::LookAtRuns(const std::vector<Watched>& watched,
                         const std::map<std::string, std::vector<std::int64_t>>& groups,
                         Look& look) const {
  std::map<std::int64_t, std::string> owners;  // The job of a process, by its number.
  for (const Watched& job : watched)
    for (const ProcessIdentity& run : job.runs)
      if (IsRunning(run, options_.procfs)) {
        look.occupied.insert(job.spec.id);
        owners[run.pid] = job.spec.id;
      }
  if (owners.empty()) return;
  std::map<std::int64_t, std::int64_t> parents;
  for (const auto& [cgroup, pids] : groups)
    for (const std::int64_t pid : pids)
      if (const auto facts = ReadProcessFacts(pid, options_.procfs)) parents[pid] = facts->parent;
  for (const auto& [pid, parent] : parents) {
    std::int64_t above = pid;
    for (int i = 0; i < kLongestParentage && parents.contains(above); ++i) {
      if (const auto owner = owners.find(above); owner != owners.end()) {
        look.Add(owner->second, pid, options_.procfs);
        break;
      }
      above = parents.at(above);
    }
  }
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
    const auto steps = StepsOf(job, {});
    for (const auto& [step, weight] : steps)
      job.cpu_of_steps[step] += (share / static_cast<double>(steps.size())) * *energy;
  }
}

void JobBook::BookCpu(Joules energy) {
  if (!std::isfinite(energy.value()) || energy < Joules()) return;
  const std::lock_guard lock(mutex_);
  cpu_energy_ = cpu_energy_.value_or(Joules()) + energy;
}

std::vector<std::string> JobBook::JobsWith(const std::string& device) const {
  std::vector<std::string> ids;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_)
    if (!job.ended && job.shares.contains(device)) ids.push_back(id);
  return ids;
}

std::set<std::string> JobBook::SharedDevices() const {
  std::set<std::string> shared;
  std::set<std::string> taken;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job.ended) continue;
    for (const std::string& device : job.spec.devices)
      if (!taken.insert(device).second) shared.insert(device);
  }
  return shared;
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
      if (looked - job.last_seen < LongestAbsence(job)) continue;
      Finish(job, kNobodyLeft);
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

// Between the steps of an allocation nobody is there, and its scheduler will say when it ends. A
// step that has vanished without a word was killed with what would have said so.
Seconds JobBook::LongestAbsence(const Job& job) const {
  const bool in_good_order =
      !job.runs.empty() &&
      std::ranges::all_of(job.runs, [](const auto& run) { return run.second.ended; });
  return job.seen && !in_good_order ? options_.absence : options_.never_seen;
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
            .cpu_of_steps = job.cpu_of_steps,
            .unrecorded = job.unrecorded,
            .cpu_time = job.cpu_time,
            .cpu_energy = job.cpu_energy};
  for (const auto& [device, share] : job.shares) view.devices.push_back(share);
  return view;
}

}  // namespace zeus::daemon
