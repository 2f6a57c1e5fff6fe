#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/replay_job.h"

// Recurrences of a recorded job under a policy, with the semantics of the reference's simulator, so
// that results can be compared with it.
namespace zeus::replay {

struct ReplayedRun {
  Choice choice{};
  bool converged = false;
  int epochs = 0;  // 0: not worth starting.
  Usage usage{};
};

struct ReplayedRecurrence {
  std::vector<ReplayedRun> runs{};
  Usage usage{};  // Of all runs, profiling included.
};

// Draws one of the recorded runs of a batch size for each run. The first run of a batch size
// carries the profiling of power limits in its first epoch. One owner.
class JobReplay {
 public:
  // `job` must outlive it.
  JobReplay(const ReplayJob& job, std::uint64_t seed);

  // Until the target is reached, at most 20 runs.
  ReplayedRecurrence Next(BatchSizePolicy& policy);

  // From now on, the same job on another GPU model, whose power limits are unknown. Numbers of
  // epochs do not depend on it.
  void MoveTo(const ReplayJob& job);

 private:
  ReplayedRun Run(BatchSizePolicy& policy, const Situation& situation, Joules cost_so_far);

  const ReplayJob* job_;
  Random random_;
  std::int64_t recurrence_ = 0;
  std::set<int> profiled_{};
};

// What policies are compared by. Costs in units of the expected cost of the oracle's choice.
struct ReplaySummary {
  double last_five_energy = 0.0;  // Of that of the default batch size at full power.
  double last_five_time = 0.0;    // Likewise.
  double last_five_cost = 0.0;
  double regret_of_50 = 0.0;
  double regret = 0.0;  // Of all recurrences.
};

ReplaySummary Summarize(const ReplayJob& job, std::span<const ReplayedRecurrence> recurrences);

// One per seed, from 0: `recurrences()` recurrences with a new policy each.
std::vector<ReplaySummary> ReplaySeeds(const ReplayJob& job, std::string_view policy, int seeds);

}  // namespace zeus::replay
