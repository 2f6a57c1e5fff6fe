#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/input/row_problems.h"

// Opens the trace of a cluster from one of three sources.
namespace zeus::cli {

// Exactly one of them must be given.
struct ClusterSourceFlags {
  std::filesystem::path groups{};  // A trace of groups.
  std::filesystem::path pai{};     // A folder with the tables of Alibaba's trace.
  std::string generate{};          // Spec of a cluster to generate.
};

struct ClusterSource {
  replay::ClusterTrace trace{};
  std::string title{};                 // "groups.csv.xz", "a generated cluster (jobs=…)"
  std::vector<std::string> remarks{};  // Sentences about jobs that were left out.
};

// `workloads` are labels ordered by default runtime, shortest first. `number` counts replays from
// 0: a generated cluster differs for each, a recorded one does not. kInvalidArgument unless exactly
// one source is given.
Result<ClusterSource> OpenClusterSource(const ClusterSourceFlags& flags,
                                        std::span<const std::string> workloads,
                                        std::uint64_t number, replay::RowProblems& problems);

}  // namespace zeus::cli
