#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/contender.h"
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

// Returns the seed of a group: Adler-32 of its name, as in the reference simulator, combined with
// the number of the replay (0: the name alone).
std::uint64_t GroupSeed(std::string_view group, std::uint64_t replay);

}  // namespace zeus::replay
