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

// What a replay of a cluster says: numbers for programs, and tables and figures for people.
namespace zeus::replay {

// Of many numbers.
struct Quantiles {
  double median = 0.0;
  double p95 = 0.0;
  double greatest = 0.0;
};

struct WorkloadShare {
  std::int64_t groups = 0;
  std::int64_t jobs = 0;
};

// What a trace is like, as far as a replay depends on it.
struct ClusterStatistics {
  std::int64_t jobs = 0;
  std::int64_t groups = 0;
  Quantiles group_size{};      // Jobs.
  Quantiles runtime{};         // Of jobs, seconds.
  double largest_tenth = 0.0;  // The share of jobs that the largest tenth of groups submits.
  double overlapping = 0.0;    // The share of jobs that start while another of their group runs.
  Seconds span{};              // From the first start to the last end.
  std::map<std::string, WorkloadShare> workloads{};
};

ClusterStatistics Describe(const ClusterTrace& trace);

Json ToJson(const ClusterStatistics& statistics);

// Two sentences for people.
std::string ToText(const ClusterStatistics& statistics);

struct ClusterComparison {
  std::string source{};                   // What was replayed: a file, a generated cluster.
  std::vector<std::string> contenders{};  // "default" is one of them.
  std::vector<ReplayJob> jobs{};
  ClusterStatistics statistics{};                      // Of the (first) trace.
  std::vector<std::vector<WorkloadTotals>> replays{};  // At least one; of each, as `jobs`.
  std::vector<std::string> remarks{};
};

// docs/formats.md. With several replays: means, and beside the ratios their standard deviation.
Json ToJson(const ClusterComparison& comparison);

// Totals per policy and workload, and Figure 9 of the Zeus paper.
report::Report ToReport(const ClusterComparison& comparison);

// Figure 9: energy and time of each workload, of those of `default`.
report::Figure SavingsFigure(const ClusterComparison& comparison);

}  // namespace zeus::replay
