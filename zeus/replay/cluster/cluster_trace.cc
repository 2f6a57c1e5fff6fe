#include "zeus/replay/cluster/cluster_trace.h"

#include <algorithm>
#include <utility>

namespace zeus::replay {

std::size_t ClusterTraceBuilder::Group(std::string_view id, std::string_view workload) {
  // Traces list one group after the other, so most rows belong to the group of the row before.
  if (!group_of_.empty() && groups_[group_of_.back()].id == id) return group_of_.back();
  const auto known = numbers_.find(id);
  if (known != numbers_.end()) return known->second;
  numbers_.emplace(id, groups_.size());
  groups_.push_back({.id = std::string(id), .workload = std::string(workload)});
  latest_start_.push_back(Seconds(0));
  unsorted_.push_back(false);
  return groups_.size() - 1;
}

bool ClusterTraceBuilder::Add(std::size_t group, const ClusterJob& job) {
  const bool in_order = job.start >= latest_start_[group];
  if (in_order) {
    latest_start_[group] = job.start;
  } else {
    unsorted_[group] = true;
  }
  ++groups_[group].job_count;
  jobs_.push_back(job);
  group_of_.push_back(static_cast<std::uint32_t>(group));
  return in_order;
}

ClusterTrace ClusterTraceBuilder::Finish() && {
  std::size_t next = 0;
  for (ClusterGroup& group : groups_) group.first_job = std::exchange(next, next + group.job_count);
  if (!std::ranges::is_sorted(group_of_)) {
    std::vector<std::size_t> places;
    for (const ClusterGroup& group : groups_) places.push_back(group.first_job);
    std::vector<ClusterJob> sorted(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) sorted[places[group_of_[i]]++] = jobs_[i];
    jobs_ = std::move(sorted);
  }
  ClusterTrace trace{.groups = std::move(groups_), .jobs = std::move(jobs_)};
  for (std::size_t i = 0; i < trace.groups.size(); ++i)
    if (unsorted_[i])
      std::ranges::stable_sort(trace.JobsOf(trace.groups[i]), {}, &ClusterJob::start);
  std::erase_if(trace.groups, [](const ClusterGroup& group) { return group.job_count == 0; });
  return trace;
}

}  // namespace zeus::replay
