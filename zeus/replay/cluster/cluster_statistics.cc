#include "zeus/replay/cluster/cluster_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "zeus/base/json.h"

namespace zeus::replay {
namespace {

Quantiles QuantilesOf(std::vector<double> values) {
  if (values.empty()) return {};
  const auto at = [&values](double share) {
    const auto place = values.begin() +
                       static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, place);
    return *place;
  };
  return {.median = at(0.5), .p95 = at(0.95), .greatest = at(1.0)};
}

std::int64_t CountOverlapping(std::span<const ClusterJob> jobs) {
  std::int64_t overlapping = 0;
  Seconds latest_end{};
  for (const ClusterJob& job : jobs) {
    overlapping += job.start < latest_end ? 1 : 0;
    latest_end = std::max(latest_end, job.end);
  }
  return overlapping;
}

double LargestTenth(std::vector<double> sizes, double jobs) {
  std::ranges::sort(sizes, std::greater<>());
  double sum = 0.0;
  for (std::size_t i = 0; i < (sizes.size() + 9) / 10; ++i) sum += sizes[i];
  return sum / jobs;
}

Json ToJson(const Quantiles& quantiles) {
  return {{"median", quantiles.median}, {"p95", quantiles.p95}, {"max", quantiles.greatest}};
}

}  // namespace

ClusterStatistics Describe(const ClusterTrace& trace) {
  ClusterStatistics statistics{.jobs = static_cast<std::int64_t>(trace.jobs.size()),
                               .groups = static_cast<std::int64_t>(trace.groups.size())};
  if (trace.jobs.empty()) return statistics;
  std::vector<double> sizes;
  std::int64_t overlapping = 0;
  for (const ClusterGroup& group : trace.groups) {
    sizes.push_back(static_cast<double>(group.job_count));
    overlapping += CountOverlapping(trace.JobsOf(group));
    WorkloadShare& share = statistics.workloads[group.workload];
    ++share.groups;
    share.jobs += static_cast<std::int64_t>(group.job_count);
  }
  std::vector<double> runtimes;
  runtimes.reserve(trace.jobs.size());
  Seconds first = trace.jobs.front().start;
  Seconds last{};
  for (const ClusterJob& job : trace.jobs) {
    runtimes.push_back((job.end - job.start).count());
    first = std::min(first, job.start);
    last = std::max(last, job.end);
  }
  const auto jobs = static_cast<double>(trace.jobs.size());
  statistics.overlapping = static_cast<double>(overlapping) / jobs;
  statistics.largest_tenth = LargestTenth(sizes, jobs);
  statistics.group_size = QuantilesOf(std::move(sizes));
  statistics.runtime = QuantilesOf(std::move(runtimes));
  statistics.span = last - first;
  return statistics;
}

Json ToJson(const ClusterStatistics& statistics) {
  Json workloads = Json::object();
  for (const auto& [label, share] : statistics.workloads)
    workloads[label] = {{"groups", share.groups}, {"jobs", share.jobs}};
  return {{"jobs", statistics.jobs},
          {"groups", statistics.groups},
          {"group_size", ToJson(statistics.group_size)},
          {"runtime_seconds", ToJson(statistics.runtime)},
          {"jobs_of_largest_tenth_of_groups", statistics.largest_tenth},
          {"overlapping_jobs", statistics.overlapping},
          {"span_seconds", statistics.span.count()},
          {"workloads", std::move(workloads)}};
}

std::string ToText(const ClusterStatistics& statistics) {
  const Quantiles& size = statistics.group_size;
  const Quantiles& runtime = statistics.runtime;
  return fmt::format(
      "{} jobs in {} groups over {:.0f} days; groups of {:.0f} jobs (median; 95 % below {:.0f}, "
      "the largest {:.0f}), the largest tenth of the groups submits {:.0f} % of the jobs. Jobs run "
      "{:.0f} s (median; 95 % below {:.0f} s, the longest {:.0f} s); {:.0f} % start while another "
      "of their group runs.",
      statistics.jobs, statistics.groups, statistics.span.count() / 86400, size.median, size.p95,
      size.greatest, 100 * statistics.largest_tenth, runtime.median, runtime.p95, runtime.greatest,
      100 * statistics.overlapping);
}

}  // namespace zeus::replay
