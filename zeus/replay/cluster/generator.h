#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/replay/cluster/cluster_trace.h"

// Generates the trace of an invented cluster that has the traits of real ones: a few groups submit
// most jobs, a few jobs run very long, and jobs of a group overlap.
namespace zeus::replay {

struct ClusterSpec {
  std::int64_t jobs = 120'000;
  std::int64_t groups = 600;
  std::uint64_t seed = 1;
  // Probability that a job starts before the previous job of its group has ended. Groups that would
  // not fit into the period otherwise overlap more often.
  double overlap = 0.3;
  double size_tail = 1.2;       // Exponent of the Pareto distribution of group sizes; a smaller one
                                // makes larger groups.
  Seconds median_runtime{900};  // Median of the lognormal distribution of group means.
  double runtime_sigma = 1.2;   // Standard deviation of its logarithm.
  double job_sigma = 0.25;      // Likewise for the jobs of a group around the group's mean.
  Seconds period{60 * 86400.0};  // All jobs start within this time.
};

// Parses "jobs=1200000,groups=6000,seed=1". Other fields are overlap, size_tail, median_runtime,
// runtime_sigma, job_sigma and days; a field that is not named keeps its default. kInvalidArgument
// names the field that is wrong.
Result<ClusterSpec> ParseClusterSpec(std::string_view text);

// Returns text that ParseClusterSpec() reads.
std::string ToText(const ClusterSpec& spec);

// Generates the same trace for the same spec on every machine. Workloads are assigned as for a
// recorded trace (AssignWorkloads).
ClusterTrace GenerateCluster(const ClusterSpec& spec, std::span<const std::string> workloads);

}  // namespace zeus::replay
