#pragma once

#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/cluster_statistics.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

// What a replay of a cluster says: numbers for programs, and tables and figures for people.
namespace zeus::replay {

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
