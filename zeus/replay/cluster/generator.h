#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/replay/cluster/cluster_trace.h"

// A cluster that never was, with the traits of those that are: few groups submit most jobs, few
// jobs run very long, and jobs of a group overlap.
namespace zeus::replay {

struct ClusterSpec {
  std::int64_t jobs = 120'000;
  std::int64_t groups = 600;
  std::uint64_t seed = 1;
  // How likely a job starts before the one before it in its group ends. More do in groups that
  // would not fit into the period otherwise.
  double overlap = 0.3;
  double size_tail = 1.2;        // Of a Pareto distribution of group sizes; smaller: heavier.
  Seconds median_runtime{900};   // Of groups, of a lognormal distribution …
  double runtime_sigma = 1.2;    // … with this standard deviation of the logarithm.
  double job_sigma = 0.25;       // Likewise, of the jobs of a group around its mean.
  Seconds period{60 * 86400.0};  // In which all jobs start.
};

// "jobs=1200000,groups=6000,seed=1", also overlap, size_tail, median_runtime, runtime_sigma,
// job_sigma, days; what is not named stays as above. kInvalidArgument names what makes no sense.
Result<ClusterSpec> ParseClusterSpec(std::string_view text);

// As ParseClusterSpec() reads it.
std::string ToText(const ClusterSpec& spec);

// The same spec gives the same trace everywhere. Workloads are assigned as those of a recorded
// trace (AssignWorkloads).
ClusterTrace GenerateCluster(const ClusterSpec& spec, std::span<const std::string> workloads);

}  // namespace zeus::replay
