#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// What jobs of a cluster took under one contender. Times, energies and costs are scaled by the
// runtime ratios of the jobs.
struct ClusterTotals {
  std::int64_t jobs = 0;
  std::int64_t runs = 0;        // Tries that were begun.
  std::int64_t retries = 0;     // Of them, not the first of their job.
  std::int64_t concurrent = 0;  // Of them, begun while an exploring one was under way.
  std::int64_t unfinished = 0;  // Jobs whose last try did not reach the target either.
  double ratios = 0.0;          // The sum of the runtime ratios of the jobs.
  Usage usage{};

  ClusterTotals& operator+=(const ClusterTotals& other);
};

// The submissions of a group, in the order of their starts, as events on a clock of their own. A
// run lasts as long as the recorded job did, and its result is known when that time is over; a try
// that fails is repeated then, for as long again. Jobs meanwhile know of it only that it is under
// way. Deterministic: the same arguments give the same totals.
Result<ClusterTotals> ReplayGroup(const ReplayJob& job, const ContenderSpec& spec,
                                  std::uint64_t seed, std::span<const ClusterJob> submissions);

// The seed of a group: of its name, as the reference has it, and of the number of the replay (0:
// the name alone).
std::uint64_t GroupSeed(std::string_view group, std::uint64_t replay);

}  // namespace zeus::replay
