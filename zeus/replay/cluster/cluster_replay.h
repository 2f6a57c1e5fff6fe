#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/job_replay.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// Sums over jobs of a cluster under one contender. Times, energies and costs are scaled by the
// runtime ratios of the jobs.
struct ClusterTotals {
  std::int64_t jobs = 0;
  std::int64_t runs = 0;        // Attempts that were begun.
  std::int64_t retries = 0;     // Attempts after the first one of their job.
  std::int64_t concurrent = 0;  // Attempts begun while an exploring run of the group was under way.
  std::int64_t unfinished = 0;  // Jobs whose last attempt did not reach the target either.
  double ratios = 0.0;          // Sum of the runtime ratios of the jobs.
  Usage usage{};

  ClusterTotals& operator+=(const ClusterTotals& other);
};

// Replays the submissions of a group, which are ordered by start, as events on a virtual clock. A
// run lasts as long as the recorded job did, and the policy learns its result only when that time
// is over. An attempt that fails is repeated then, for as long again. Jobs that start meanwhile
// know only that the run is under way, as on a real cluster. The same arguments always
// give the same totals.
Result<ClusterTotals> ReplayGroup(const ReplayJob& job, const ContenderSpec& spec,
                                  std::uint64_t seed, std::span<const ClusterJob> submissions);

// A run whose result became known.
struct EndedRun {
  TimePoint end{};
  ReplayedRun run{};
};

// As above, and appends every run that took time to `ended`, in the order of their ends.
Result<ClusterTotals> ReplayGroup(const ReplayJob& job, const ContenderSpec& spec,
                                  std::uint64_t seed, std::span<const ClusterJob> submissions,
                                  std::vector<EndedRun>& ended);

// Returns the seed of a group: Adler-32 of its name, as in the reference simulator, combined with
// the number of the replay (0: the name alone).
std::uint64_t GroupSeed(std::string_view group, std::uint64_t replay);

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
