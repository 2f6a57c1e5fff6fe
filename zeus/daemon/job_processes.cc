#include "zeus/daemon/job_processes.h"

#include <unistd.h>

#include <sstream>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

constexpr int kLongestAncestry = 64;
constexpr std::string_view kSlurmPrefix = "slurm:";

Seconds FromTicks(std::uint64_t ticks) {
  static const auto kPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return Seconds(static_cast<double>(ticks) / kPerSecond);
}

}  // namespace

// Field 4 is the parent, 14 and 15 are the time used, 22 is the start. The name in field 2 may hold
// anything, so fields are counted from its end.
std::optional<ProcessFacts> ReadProcessFacts(std::int64_t pid, const fs::path& procfs) {
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kUser = 11;
  constexpr std::size_t kSystem = 12;
  constexpr std::size_t kStart = 19;
  const auto text = ReadSmallFile(procfs / std::to_string(pid) / "stat");
  if (!text.ok() || text.value().rfind(')') == std::string::npos) return std::nullopt;
  std::istringstream rest(text.value().substr(text.value().rfind(')') + 1));
  std::vector<std::string> fields;
  for (std::string field; fields.size() <= kStart && rest >> field;) fields.push_back(field);
  if (fields.size() <= kStart) return std::nullopt;
  const auto parent = ParseInteger(fields[kParent]);
  const auto user = ParseUnsigned(fields[kUser]);
  const auto system = ParseUnsigned(fields[kSystem]);
  const auto start = ParseUnsigned(fields[kStart]);
  if (!parent.ok() || !user.ok() || !system.ok() || !start.ok()) return std::nullopt;
  return ProcessFacts{.parent = parent.value(),
                      .start_ticks = start.value(),
                      .cpu_time = FromTicks(user.value() + system.value())};
}

std::string CgroupOfPid(std::int64_t pid, const fs::path& procfs) {
  const auto text = ReadSmallFile(procfs / std::to_string(pid) / "cgroup");
  return text.ok() ? CgroupOfProcess(text.value()) : std::string();
}

std::map<std::string, std::vector<std::int64_t>> ProcessesByCgroup(const fs::path& procfs) {
  std::map<std::string, std::vector<std::int64_t>> processes;
  std::error_code failure;
  fs::directory_iterator entry(procfs, failure);
  for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
    const auto pid = ParseInteger(entry->path().filename().string());
    if (pid.ok()) processes[CgroupOfPid(pid.value(), procfs)].push_back(pid.value());
  }
  return processes;
}

std::vector<ProcessIdentity> Ancestry(const ProcessIdentity& process, const fs::path& procfs) {
  std::vector<ProcessIdentity> found{process};
  auto facts = ReadProcessFacts(process.pid, procfs);
  // The number may have been given to another process.
  if (!facts || facts->start_ticks != process.start_ticks) return found;
  for (int i = 0; i < kLongestAncestry && facts && facts->parent > 1; ++i) {
    const std::int64_t pid = facts->parent;
    facts = ReadProcessFacts(pid, procfs);
    if (facts) found.push_back({pid, facts->start_ticks, process.pid_namespace});
  }
  return found;
}

// The first line of /proc/stat without idle (4), waiting for disks (5), and time of guests (9, 10),
// which user time contains.
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

bool IsShortFor(std::string_view short_id, std::string_view id) {
  if (!short_id.starts_with(kSlurmPrefix) || !id.starts_with(kSlurmPrefix)) return false;
  short_id.remove_prefix(kSlurmPrefix.size());
  const std::size_t dot = id.rfind('.');
  return short_id.find('.') == std::string_view::npos && dot != std::string_view::npos &&
         id.substr(dot + 1) == short_id;
}

bool IsGroupOfJob(const JobIdentity& group, std::string_view id) {
  return group.job == id || (group.kind == JobKind::kSlurm && IsShortFor(group.job, id));
}

}  // namespace zeus::daemon
