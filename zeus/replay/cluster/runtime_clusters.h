#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "zeus/replay/cluster/cluster_trace.h"

namespace zeus::replay {

// K-means of numbers, exactly: the partition of the sorted values whose squared distances from the
// means of their clusters are least, found by dynamic programming rather than by improving a random
// start. One number for each value: its cluster, 0 being that of the least values. Equal values
// share a cluster; fewer different values than clusters make fewer clusters. O(k n log n).
std::vector<std::size_t> KMeans(std::span<const double> values, std::size_t clusters);

// Zeus §6.3: groups are clustered by their mean runtime, and the clusters, in the order of runtime,
// become `workloads` (labels, shortest first). Runtime ratios become those to the mean of all jobs
// of the workload.
void AssignWorkloads(ClusterTrace& trace, std::span<const std::string> workloads);

}  // namespace zeus::replay
