#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/replay/input/csv_reader.h"
#include "zeus/replay/input/text_source.h"

// The submissions to a cluster: groups of recurring jobs, which may overlap in time (Zeus §6.3).
namespace zeus::replay {

// One submission.
struct ClusterJob {
  Seconds start{};  // Since the trace began.
  Seconds end{};
  // Runtime of this job divided by the mean of all jobs of its workload.
  double runtime_ratio = 1.0;
};

// A job that was submitted over and over.
struct ClusterGroup {
  std::string id{};
  std::string workload{};     // Label such as "deepspeech2".
  std::size_t first_job = 0;  // Index into ClusterTrace::jobs.
  std::size_t job_count = 0;
};

struct ClusterTrace {
  std::vector<ClusterGroup> groups{};
  std::vector<ClusterJob> jobs{};  // Grouped; within a group ordered by start.

  std::span<const ClusterJob> GroupJobs(const ClusterGroup& group) const {
    return std::span(jobs).subspan(group.first_job, group.job_count);
  }
  std::span<ClusterJob> GroupJobs(const ClusterGroup& group) {
    return std::span(jobs).subspan(group.first_job, group.job_count);
  }
};

// Builds a trace from submissions that arrive in any order. Not thread-safe.
class ClusterTraceBuilder {
 public:
  // Returns the index of a group, which is created when it is first mentioned.
  std::size_t Group(std::string_view id, std::string_view workload);
  const std::string& workload(std::size_t group) const { return groups_[group].workload; }

  // Adds a job. Returns false if the group already has a job with a later start; the job is added
  // all the same, and Finish() puts it in order.
  bool Add(std::size_t group, const ClusterJob& job);

  // Returns the groups in the order of their first mention, each with its jobs ordered by start.
  ClusterTrace Finish() &&;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  std::vector<ClusterGroup> groups_{};
  std::vector<Seconds> latest_start_{};  // Per group.
  // Per group: whether a job was added after one with a later start.
  std::vector<bool> unsorted_{};
  std::vector<ClusterJob> jobs_{};
  std::vector<std::uint32_t> group_of_{};  // Group index of each entry of jobs_.
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> numbers_{};
};

// Reads and writes the trace of groups that the evaluation of the Zeus paper uses
// (docs/formats.md): a row per job with group, start_time, end_time, dataset and runtime_ratio.

// Unusable rows are left out, rows that start before the previous one of their group are put in
// order; `problems` gets both. kInvalidArgument when no usable row is left.
Result<ClusterTrace> ReadGroupTrace(const std::filesystem::path& path, RowProblems& problems);
Result<ClusterTrace> ReadGroupTrace(TextSource source, RowProblems& problems);

// Passes the text that ReadGroupTrace() reads to `write` in parts, because a trace is too large to
// be in memory twice. Stops at the first error of `write` and returns it.
Status WriteGroupTrace(const ClusterTrace& trace,
                       const std::function<Status(std::string_view part)>& write);

}  // namespace zeus::replay
