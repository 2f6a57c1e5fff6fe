#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "zeus/base/json_fwd.h"
#include "zeus/base/units.h"
#include "zeus/replay/cluster/cluster_trace.h"

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

}  // namespace zeus::replay
