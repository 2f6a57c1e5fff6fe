#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "zeus/base/units.h"

// What was submitted to a cluster: groups of recurring jobs, which may overlap (Zeus §6.3).
namespace zeus::replay {

// One submission.
struct ClusterJob {
  Seconds start{};  // Since the trace began.
  Seconds end{};
  double runtime_ratio = 1.0;  // Its runtime, of the mean of all jobs of its workload.
};

// Submissions of the same job, over and over.
struct ClusterGroup {
  std::string id{};
  std::string workload{};     // deepspeech2, …
  std::size_t first_job = 0;  // Of ClusterTrace::jobs.
  std::size_t job_count = 0;
};

struct ClusterTrace {
  std::vector<ClusterGroup> groups{};
  std::vector<ClusterJob> jobs{};  // Group by group, each in the order of their starts.

  std::span<const ClusterJob> JobsOf(const ClusterGroup& group) const {
    return std::span(jobs).subspan(group.first_job, group.job_count);
  }
  std::span<ClusterJob> JobsOf(const ClusterGroup& group) {
    return std::span(jobs).subspan(group.first_job, group.job_count);
  }
};

// Collects submissions in any order. One owner.
class ClusterTraceBuilder {
 public:
  // The number of the group; a group is made at its first mention.
  std::size_t Group(std::string_view id, std::string_view workload);
  const std::string& workload(std::size_t group) const { return groups_[group].workload; }

  // False if the group has a later start already. The job is taken all the same.
  bool Add(std::size_t group, const ClusterJob& job);

  // Groups in the order of their first mention, the jobs of each in the order of their starts.
  ClusterTrace Finish() &&;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  std::vector<ClusterGroup> groups_{};
  std::vector<Seconds> latest_start_{};  // Of each group.
  std::vector<bool> unsorted_{};         // Likewise.
  std::vector<ClusterJob> jobs_{};
  std::vector<std::uint32_t> group_of_{};  // Of each job.
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> numbers_{};
};

}  // namespace zeus::replay
