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

namespace zeus::daemon {

// The jobs that schedulers have registered, who belongs to them, and the energy of their devices.
//
// A process belongs to a job when it is the job's user's and is in the job's cgroup, in a cgroup
// that says the job's place or id ("pod:7b1c…", "slurm:1234"), or one of its pids. A job ends when
// it is told so, or when nobody has been in it for 10 s after somebody was.
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
    std::string end_reason{};  // "deleted", "nobody left"
    std::string since{};       // RFC 3339.
    Seconds duration{};
    std::vector<DeviceShare> devices{};
    // By Slurm step; "" is what no process of a known step has used.
    std::map<std::string, Joules> steps{};
    // CPU time of its processes, as far as looks every two seconds see it, and the part of the
    // packages' energy that their share of all CPU time makes; nullopt where that is not measured.
    Seconds cpu_time{};
    std::optional<Joules> cpu_energy{};
  };

  // The same job again is no mistake: hooks of schedulers are repeated. kConflict for another job
  // of the same id that has not ended, kNotFound for a pid that does not exist, kUnavailable when
  // there are as many jobs as there may be.
  Status Register(const JobSpec& spec);
  // kNotFound for an unknown job or one that has ended.
  Status End(std::string_view id);
  std::optional<View> Find(std::string_view id) const;
  std::vector<View> List() const;  // Ended ones included, by id.
  bool AnyRunning() const;
  bool Runs(std::string_view id) const;
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

  // The jobs that an earlier run of the daemon had registered; their energy begins at 0.
  Status Load();

 private:
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
    std::map<std::pair<std::int64_t, std::uint64_t>, Seconds> cpu_of{};  // By pid and start.
    Seconds cpu_time{};
    Seconds cpu_now{};  // CPU time since the look before.
    std::optional<Joules> cpu_energy{};
  };
  struct Look;     // A look at all processes of the machine.
  struct Weights;  // How a slice is split; in the .cc file.
  struct Found;    // Where a process is.
  struct Watched;  // As much of a job as it takes to look for its processes.

  Result<Job> NewJob(const JobSpec& spec) const;
  bool Includes(const Job& job, const Caller& caller) const;
  // The processes of a slice, by their numbers.
  std::map<std::int64_t, Found> Find(const Slice& slice) const;
  Look LookAt(const std::vector<Watched>& jobs) const;
  std::vector<Watched> Running() const;

  // These need mutex_.
  std::vector<Job*> JobsOn(const std::string& device);
  Weights Weigh(const Slice& slice, const std::map<std::int64_t, Found>& processes,
                const std::vector<Job*>& jobs) const;
  void CountCpu(Job& job, const Look& look, const std::string& id);
  void SplitCpu(const Look& look);
  void Give(Job& job, const Slice& slice, double part, const std::map<std::string, double>& steps);
  void Finish(Job& job, std::string reason);
  void Forget();
  void Save() const;
  View ViewOf(const Job& job) const;

  const Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Job, std::less<>> jobs_{};  // Guarded by mutex_, as are all below.
  std::map<std::string, DeviceTotal> totals_{};
  std::optional<Joules> cpu_energy_{};  // Not split yet.
  Seconds busy_{};                      // CPU time of the machine at the last look.
};

// The body of GET /v1/jobs/{id}.
Json ToJson(const JobBook::View& job);

}  // namespace zeus::daemon
