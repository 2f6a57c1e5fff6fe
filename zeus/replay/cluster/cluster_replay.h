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
  std::uint64_t replay = 0;  // A different number draws different runs from the same records.
  int threads = 1;
  // Called from any thread with the number of jobs replayed since the last call. All calls together
  // report the number of jobs times the number of contenders.
  std::function<void(std::int64_t)> jobs_done{};
};

// Sums over groups from which the scatter of the saving between groups is computed: squares and
// products, in joules squared, of the energy that a group used under one contender (`own`) and
// under `default`.
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
  std::vector<ClusterTotals> contenders{};  // In the order of ClusterReplayOptions::contenders.
  std::vector<EnergyScatter> scatter{};  // In the same order; zero unless `default` is a contender.
};

// Replays every group of the trace under every contender. `jobs` holds one job for each workload
// that the trace names; kNotFound if one is missing. Returns one entry for each of `jobs`, in their
// order, also for workloads without a group. The result is bit-identical for any number of threads.
// Takes O(jobs x contenders) time and, beside the trace, O(groups x contenders + threads) memory.
Result<std::vector<WorkloadTotals>> ReplayCluster(const ClusterTrace& trace,
                                                  std::span<const ReplayJob> jobs,
                                                  const ClusterReplayOptions& options);

// Returns the labels of the jobs by the time that their default configuration takes, shortest
// first, as AssignWorkloads() expects them.
std::vector<std::string> ByDefaultRuntime(std::span<const ReplayJob> jobs);

}  // namespace zeus::replay
