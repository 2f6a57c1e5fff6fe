#include "zeus/replay/cluster/cluster_trace.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "zeus/base/csv.h"
#include "zeus/replay/input/csv_reader.h"
#include "zeus/replay/replay_job.h"

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
      std::ranges::stable_sort(trace.GroupJobs(trace.groups[i]), {}, &ClusterJob::start);
  std::erase_if(trace.groups, [](const ClusterGroup& group) { return group.job_count == 0; });
  return trace;
}

namespace {

enum Column : std::size_t { kGroup, kStart, kEnd, kDatasetName, kRatio };

// Limits far beyond any cluster that keep sums over all jobs finite.
constexpr double kLatestTime = 1e15;  // Seconds.
constexpr double kLargestRatio = 1e9;

const CsvColumns& Columns() {
  static const CsvColumns columns{
      .required = {"group", "start_time", "end_time", "dataset", "runtime_ratio"}};
  return columns;
}

// Finds a workload by its dataset, as the format names it, or by its label.
const WorkloadKey* FindWorkloadOfRow(std::string_view dataset) {
  for (const WorkloadKey& workload : PaperWorkloads())
    if (workload.dataset == dataset || workload.label == dataset) return &workload;
  return nullptr;
}

// Reads times and ratio of the present row. nullopt: the row is unusable and was reported.
std::optional<ClusterJob> ReadGroupJob(CsvReader& reader) {
  const auto start = reader.Number(kStart);
  if (!start) return std::nullopt;
  const auto end = reader.Number(kEnd);
  if (!end) return std::nullopt;
  const auto ratio = reader.Number(kRatio);
  if (!ratio) return std::nullopt;
  if (*start < 0) {
    reader.Report("start_time is negative", reader.Text(kStart));
  } else if (*end < *start) {
    reader.Report("end_time is before start_time", reader.Text(kEnd));
  } else if (*end > kLatestTime) {
    reader.Report("end_time is above 1e15 seconds", reader.Text(kEnd));
  } else if (*ratio < 0) {
    reader.Report("runtime_ratio is negative", reader.Text(kRatio));
  } else if (*ratio > kLargestRatio) {
    reader.Report("runtime_ratio is above 1e9", reader.Text(kRatio));
  } else {
    return ClusterJob{.start = Seconds(*start), .end = Seconds(*end), .runtime_ratio = *ratio};
  }
  return std::nullopt;
}

void AddGroupRow(CsvReader& reader, ClusterTraceBuilder& builder) {
  if (reader.Text(kGroup).empty()) return reader.Report("group is empty");
  const WorkloadKey* const workload = FindWorkloadOfRow(reader.Text(kDatasetName));
  if (workload == nullptr) return reader.Report("dataset is unknown", reader.Text(kDatasetName));
  const auto job = ReadGroupJob(reader);
  if (!job) return;
  const std::size_t group = builder.Group(reader.Text(kGroup), workload->label);
  if (builder.workload(group) != workload->label)
    return reader.Report("dataset is not that of the group's first row", reader.Text(kDatasetName));
  if (!builder.Add(group, *job))
    reader.Report("starts before the row above it in its group", reader.Text(kStart),
                  RowFate::kKept);
}

}  // namespace

Result<ClusterTrace> ReadGroupTrace(const std::filesystem::path& path, RowProblems& problems) {
  ZEUS_TRY(TextSource source, TextSource::Open(path));
  return ReadGroupTrace(std::move(source), problems);
}

Result<ClusterTrace> ReadGroupTrace(TextSource source, RowProblems& problems) {
  const std::string name = source.name();
  ZEUS_TRY(CsvReader reader, CsvReader::Make(std::move(source), Columns(), problems));
  ClusterTraceBuilder builder;
  while (true) {
    ZEUS_TRY(const bool found, reader.Next());
    if (!found) break;
    AddGroupRow(reader, builder);
  }
  ClusterTrace trace = std::move(builder).Finish();
  if (!trace.jobs.empty()) return trace;
  const Status refused = problems.Refuse();
  return Error{ErrorCode::kInvalidArgument, refused.ok()
                                                ? name + ": no jobs below the first line"
                                                : "no usable job: " + refused.error().message};
}

Status WriteGroupTrace(const ClusterTrace& trace,
                       const std::function<Status(std::string_view part)>& write) {
  std::string text = "group,start_time,end_time,dataset,runtime_ratio\n";
  for (const ClusterGroup& group : trace.groups) {
    ZEUS_TRY(const WorkloadKey* const workload, FindWorkload(group.workload));
    const std::string id = CsvField(group.id);
    for (const ClusterJob& job : trace.GroupJobs(group))
      fmt::format_to(std::back_inserter(text), FMT_COMPILE("{},{},{},{},{}\n"), id,
                     job.start.count(), job.end.count(), workload->dataset, job.runtime_ratio);
    ZEUS_RETURN_IF_ERROR(write(text));
    text.clear();
  }
  return Ok();
}

}  // namespace zeus::replay
