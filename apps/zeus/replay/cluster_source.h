#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/input/row_problems.h"

// Where the jobs of a cluster come from.
namespace zeus::cli {

// Exactly one of them is given.
struct ClusterSourceFlags {
  std::filesystem::path groups{};  // A trace of groups.
  std::filesystem::path pai{};     // A folder with the tables of Alibaba's trace.
  std::string generate{};          // Traits of a cluster to make up.
};

struct ClusterSource {
  replay::ClusterTrace trace{};
  std::string title{};                 // "groups.csv.xz", "a generated cluster (jobs=…)"
  std::vector<std::string> remarks{};  // What is no part of it.
};

// `workloads`: labels, shortest default runtime first. `number` counts replays from 0: a made-up
// cluster is another one each time, a recorded one stays what it is. kInvalidArgument unless
// exactly one source is given.
Result<ClusterSource> OpenClusterSource(const ClusterSourceFlags& flags,
                                        std::span<const std::string> workloads,
                                        std::uint64_t number, replay::RowProblems& problems);

}  // namespace zeus::cli
