#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_report.h"
#include "zeus/replay/cluster/generator.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay::paper {

struct ClusterStudyOptions {
  int clusters = 10;
  ClusterSpec spec{};  // That of the first cluster; the others differ in their seed.
  int threads = 1;
  std::function<void(std::int64_t)> jobs_done{};  // As that of ClusterReplayOptions.
};

// How far `jobs_done` counts.
std::int64_t CountJobs(const ClusterStudyOptions& options);

// Figure 9 on generated clusters of these jobs: default, zeus, knowledge_gradient and grid.
Result<ClusterComparison> RunClusterStudy(const std::vector<ReplayJob>& jobs,
                                          const ClusterStudyOptions& options);

}  // namespace zeus::replay::paper
