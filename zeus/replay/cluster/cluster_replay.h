#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/cluster/group_replay.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

struct ClusterReplayOptions {
  std::vector<ContenderSpec> contenders{};
  std::uint64_t replay = 0;  // Other numbers draw other runs from the same records.
  int threads = 1;
  // Told of so many more jobs that were replayed, from any thread; their number times that of the
  // contenders is all.
  std::function<void(std::int64_t)> jobs_done{};
};

// Sums over groups from which follows how much the saving scatters between them: squares and
// products of what a group took under one contender and under `default`, in joules.
struct EnergyScatter {
  std::int64_t groups = 0;
  double own_squares = 0;
  double products = 0;
  double default_squares = 0;

  void Add(Joules own, Joules usual);
  EnergyScatter& operator+=(const EnergyScatter& other);
};

struct WorkloadTotals {
  std::string workload{};
  std::vector<ClusterTotals> contenders{};  // As in the options.
  std::vector<EnergyScatter> scatter{};     // Likewise; zero where `default` is not among them.
};

// Every group of the trace under every contender. `jobs` has one of each workload that the trace
// names; kNotFound otherwise. One entry for each of `jobs`, in their order, also where the trace
// has no group of it. The result does not depend on the number of threads, to the last bit. O(jobs
// x contenders) time; beside the trace, O(groups x contenders + threads) memory.
Result<std::vector<WorkloadTotals>> ReplayCluster(const ClusterTrace& trace,
                                                  std::span<const ReplayJob> jobs,
                                                  const ClusterReplayOptions& options);

// Labels of the jobs in the order of what their default configuration takes, shortest first
// (AssignWorkloads).
std::vector<std::string> ByDefaultRuntime(std::span<const ReplayJob> jobs);

}  // namespace zeus::replay
