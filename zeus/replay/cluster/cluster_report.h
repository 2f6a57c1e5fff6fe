#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/units.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

// The results of a cluster replay as JSON for programs and as tables and figures for people.
namespace zeus::replay {

struct Quantiles {
  double median = 0.0;
  double p95 = 0.0;
  double greatest = 0.0;
};

struct WorkloadShare {
  std::int64_t groups = 0;
  std::int64_t jobs = 0;
};

// The properties of a trace on which the outcome of a replay depends.
struct ClusterStatistics {
  std::int64_t jobs = 0;
  std::int64_t groups = 0;
  Quantiles group_size{};      // Counted in jobs.
  Quantiles runtime{};         // Runtimes of single jobs, in seconds.
  double largest_tenth = 0.0;  // Share of all jobs that belong to the largest tenth of the groups.
  double overlapping = 0.0;    // Share of jobs that start while another job of their group runs.
  Seconds span{};              // From the first start to the last end.
  std::map<std::string, WorkloadShare> workloads{};
};

ClusterStatistics Describe(const ClusterTrace& trace);

Json ToJson(const ClusterStatistics& statistics);

// Returns a description of two sentences.
std::string ToText(const ClusterStatistics& statistics);

struct ClusterComparison {
  std::string source{};  // The replayed file, or the spec of the generated cluster.
  std::vector<std::string> contenders{};  // "default" is one of them.
  std::vector<ReplayJob> jobs{};
  ClusterStatistics statistics{};  // Describes the first trace, if there are several.
  // At least one replay; each has one entry per job, in the order of `jobs`.
  std::vector<std::vector<WorkloadTotals>> replays{};
  std::vector<std::string> remarks{};
};

// The format is in docs/formats.md. With several replays it holds means, and standard deviations of
// the ratios.
Json ToJson(const ClusterComparison& comparison);

// Returns a table of totals by policy and workload, and Figure 9 of the Zeus paper.
report::Report ToReport(const ClusterComparison& comparison);

// Returns Figure 9 of the paper: energy and time of each workload relative to `default`.
report::Figure SavingsFigure(const ClusterComparison& comparison);

}  // namespace zeus::replay
