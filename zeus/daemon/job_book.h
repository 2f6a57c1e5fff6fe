#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/daemon/caller.h"
#include "zeus/daemon/job_spec.h"
#include "zeus/daemon/state_log.h"

namespace zeus::daemon {

// The jobs that schedulers have registered, who belongs to them, and the energy of their devices.
//
// A process belongs to a job when it is the job's user's and is in the job's cgroup, in a cgroup
// that says the job's place or id ("pod:7b1c…", "slurm:1234"), one of its pids, or started by the
// process that runs one of its steps. A job ends when it is told so, or when nobody has been in it
// for 10 s after somebody was. A job whose steps said when they ended goes on: its scheduler may
// start others.
//
// "slurm:1234" also means the job "slurm:CLUSTER.1234".
//
// Energy of a device belongs to the job that has it; jobs that share it get parts in proportion to
// the utilisation by their processes, and none of what it draws when idle or for processes that
// several of them claim. The parts add up to the energy of the device, to rounding.
//
// Thread-safe; the clock must outlive it.
class JobBook {
 public:
  struct Options {
    std::function<void(const std::string& job)> ended{};  // Called without a lock, from any thread.
    std::filesystem::path state_file{};                   // Empty: jobs do not survive a restart.
    std::size_t most_jobs = 1024;                         // That run; as many ended ones are kept.
    Seconds ended_kept{600};
    Seconds absence{10};
    Seconds never_seen{24 * 3600};  // A job in which nobody has ever been seen ends then.
    std::filesystem::path procfs = "/proc";
    BootClock boot_clock = CurrentBootTime;
  };
  JobBook(const Clock& clock, Options options);

  // The energy of a device that belongs to a job.
  struct DeviceShare {
    std::string device{};
    Joules energy{};
    Joules sigma{};       // One standard deviation; errors of a device are taken as systematic.
    bool shared = false;  // Another job had the device for a part of the time.
  };
  struct View {
    JobSpec spec{};
    bool ended = false;
    std::string end_reason{};  // "deleted", "nobody left", "unknown" after a reboot
    std::string since{};       // RFC 3339.
    Seconds duration{};
    std::vector<DeviceShare> devices{};
    // By Slurm step; "" is what no process of a known step has used. They add up to the job.
    std::map<std::string, Joules> steps{};
    std::map<std::string, Joules> cpu_of_steps{};
    Seconds unrecorded{};  // From its begin until the daemon learned of it.
    // CPU time of its processes, as far as looks every two seconds see it, and the part of the
    // packages' energy that their share of all CPU time makes; nullopt where that is not measured.
    Seconds cpu_time{};
    std::optional<Joules> cpu_energy{};
  };

  enum class Registered {
    kAnew,
    kAlready,  // The same job again is no mistake: hooks of schedulers are repeated.
    kRevived,  // It had ended because nobody was left, and goes on with its energy.
  };
  // A job that was started again by its scheduler (label "restarts") takes the place of the run
  // before. kConflict for another job of the same id that has not ended, kNotFound for a pid that
  // does not exist, kUnavailable when there are as many jobs as there may be. `begun`: when it
  // began, for a job that the daemon learns of late.
  Result<Registered> Register(const JobSpec& spec, std::optional<WallTime> begun = {});
  // kNotFound for an unknown job or one that has ended.
  Status End(std::string_view id);
  // A process runs a step from now on. kNotFound for a process or a job that does not exist.
  Result<Registered> BeginStep(std::string_view id, const StepSpec& step);
  // The step has ended in good order. kNotFound for an unknown job or step.
  Status EndStep(std::string_view id, std::string_view step);
  std::optional<View> Find(std::string_view id) const;
  std::vector<View> List() const;  // Ended ones included, by id.
  bool AnyRunning() const;
  bool Runs(std::string_view id) const;
  // The running jobs that have the device.
  std::vector<std::string> JobsWith(const std::string& device) const;
  // The devices that several running jobs have.
  std::set<std::string> SharedDevices() const;
  // The devices whose energy is split by what processes do: those that several jobs have, or one of
  // a scheduler with steps. Slices of others need no samples.
  std::set<std::string> DevicesWithSamples() const;

  // The jobs that the caller belongs to, and their devices.
  std::vector<std::string> JobsOf(const Caller& caller) const;
  std::set<std::string> DevicesOf(const Caller& caller) const;

  // The energy of a device since the last slice, and how far processes kept it busy meanwhile.
  struct Slice {
    struct Sample {
      std::int64_t pid = 0;
      double utilisation = 0.0;  // Only the ratios matter.
    };
    std::string device{};
    Joules energy{};
    Joules sigma{};
    Joules idle{};  // Its energy if it had had nothing to do; 0 where that is not known.
    std::vector<Sample> samples{};
  };
  // A slice that is negative or not finite is ignored.
  void Book(const Slice& slice);

  // The energy of all CPU packages since the last call; it is split at the next Step().
  void BookCpu(Joules energy);

  // All energy of a device that was booked: `total` is that of all jobs, ended and forgotten ones
  // included, `shared_idle` and `no_job`.
  struct DeviceTotal {
    Joules total{};
    Joules of_jobs{};
    // Drawn while several jobs had the device, without work or for nobody knows which of them.
    Joules shared_idle{};
    Joules no_job{};  // While no job had it, or by processes of no job.
  };
  std::map<std::string, DeviceTotal> Totals() const;

  // Ends jobs that nobody is left in, forgets those that ended long ago. Reads all processes of the
  // machine when it has to, without a lock. Returns when to come again.
  TimePoint Step();

  // The jobs that an earlier run of the daemon had registered, with their energy. On another boot
  // they have ended, as has everything else.
  Status Load();
  // The counter of a device, as of what was booked last: it is kept with the jobs.
  void SetCounter(const std::string& device, Joules counter);
  // The counter as an earlier run left it; the difference is what the device used meanwhile.
  std::optional<Joules> SavedCounter(const std::string& device) const;
  // Writes the jobs to the state file, where there are some.
  void SaveEnergy();

 private:
  struct StepRun {
    ProcessIdentity process{};
    bool ended = false;  // It said so.
  };
  struct Job {
    JobSpec spec{};
    std::vector<ProcessIdentity> processes{};  // Those of spec.pids.
    WallTime since{};
    TimePoint began{};
    std::optional<TimePoint> ended{};
    std::string end_reason{};
    bool seen = false;  // A process has been in it.
    bool looked_at = false;
    TimePoint last_seen{};  // Or when it began.
    std::map<std::string, DeviceShare> shares{};
    std::map<std::string, Joules> steps{};
    std::map<std::string, Joules> cpu_of_steps{};
    std::map<std::string, StepRun> runs{};
    std::map<std::string, double> step_weights{};  // The latest that samples told.
    Seconds unrecorded{};
    std::map<std::pair<std::int64_t, std::uint64_t>, Seconds> cpu_of{};  // By pid and start.
    Seconds cpu_time{};
    Seconds cpu_now{};  // CPU time since the look before.
    std::optional<Joules> cpu_energy{};
  };
  struct Look;     // A look at all processes of the machine.
  struct Weights;  // How a slice is split; in the .cc file.
  struct Found;    // Where a process is.
  struct Watched;  // As much of a job as it takes to look for its processes.

  Result<Job> NewJob(const JobSpec& spec, std::optional<WallTime> begun) const;
  bool Includes(const Job& job, const Caller& caller,
                const std::vector<ProcessIdentity>& ancestry) const;
  std::vector<ProcessIdentity> AncestryOf(const Caller& caller) const;
  // The processes of a slice, by their numbers.
  std::map<std::int64_t, Found> Find(const Slice& slice) const;
  Look LookAt(const std::vector<Watched>& jobs) const;
  void LookAtRuns(const std::vector<Watched>& watched,
                  const std::map<std::string, std::vector<std::int64_t>>& groups, Look& look) const;
  std::vector<Watched> Running() const;

  // These need mutex_.
  std::map<std::string, Job, std::less<>>::iterator FindJob(std::string_view id);
  std::map<std::string, Job, std::less<>>::const_iterator FindJob(std::string_view id) const;
  Seconds LongestAbsence(const Job& job) const;
  static std::map<std::string, double> StepsOf(Job& job,
                                               const std::map<std::string, double>& sampled);
  void Revive(Job& job);
  std::vector<Job*> JobsOn(const std::string& device);
  Weights Weigh(const Slice& slice, const std::map<std::int64_t, Found>& processes,
                const std::vector<Job*>& jobs) const;
  void CountCpu(Job& job, const Look& look, const std::string& id);
  void SplitCpu(const Look& look);
  void Give(Job& job, const Slice& slice, double part, const std::map<std::string, double>& steps);
  void Finish(Job& job, std::string reason);
  void Forget();
  void Save();
  void SaveChange(Json change);  // As Save(), by one line.
  void Split(const Slice& slice, const std::map<std::int64_t, Found>& processes);
  Json StateOf(const Job& job) const;
  Result<Job> JobOfState(const Json& entry, const std::string& pid_namespace) const;
  Status Restore(const std::vector<std::string>& lines);
  Status Repeat(const Json& change, const std::string& pid_namespace);
  View ViewOf(const Job& job) const;

  const Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  StateLog file_;                                   // Guarded by mutex_.
  std::map<std::string, Job, std::less<>> jobs_{};  // Guarded by mutex_, as are all below.
  std::map<std::string, DeviceTotal> totals_{};
  std::optional<Joules> cpu_energy_{};  // Not split yet.
  Seconds busy_{};                      // CPU time of the machine at the last look.
  std::map<std::string, Joules> counters_{};
  std::map<std::string, Joules> saved_counters_{};
};

// The body of GET /v1/jobs/{id}.
Json ToJson(const JobBook::View& job);

}  // namespace zeus::daemon
