#pragma once

#include <vector>

#include "zeus/replay/cluster/cluster_report.h"
#include "zeus/replay/paper/claims.h"

namespace zeus::replay::paper {

// §6.3: on a cluster of recurring jobs. `default`, `zeus` and `grid` are among its contenders.
std::vector<Claim> ClusterClaims(const ClusterComparison& cluster);

}  // namespace zeus::replay::paper
