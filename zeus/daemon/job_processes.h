#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/process.h"
#include "zeus/base/units.h"
#include "zeus/daemon/cgroup.h"

namespace zeus::daemon {

// One process as /proc/PID/stat describes it (proc(5)).
struct ProcessFacts {
  std::int64_t parent = 0;
  std::uint64_t start_ticks = 0;
  Seconds cpu_time{};
};
std::optional<ProcessFacts> ReadProcessFacts(std::int64_t pid,
                                             const std::filesystem::path& procfs = "/proc");

// The control group of a process; empty where it has ended.
std::string CgroupOfPid(std::int64_t pid, const std::filesystem::path& procfs = "/proc");

// The processes of a machine by their control groups.
std::map<std::string, std::vector<std::int64_t>> ProcessesByCgroup(
    const std::filesystem::path& procfs);

// The process and those above it by parentage, nearest first. Whoever outlives its parent is a
// child of the machine's first process.
std::vector<ProcessIdentity> Ancestry(const ProcessIdentity& process,
                                      const std::filesystem::path& procfs = "/proc");

// The CPU time of all processes since the boot; 0 where nothing tells.
Seconds ReadBusyTime(const std::filesystem::path& procfs);

// Whether a control group is one of the job's. A scheduler's group has the number of a job, the id
// may have the name of its cluster, too: job_7 is that of "slurm:7" and of "slurm:zeus.7".
bool IsGroupOfJob(const JobIdentity& group, std::string_view id);
// Whether an id without a cluster's name means this job.
bool IsShortFor(std::string_view short_id, std::string_view id);

}  // namespace zeus::daemon
