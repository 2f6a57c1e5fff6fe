#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/batch_size/policy.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/replay_job.h"

namespace zeus::replay {

// A decision of a contender about one run, and the outcome of the run.
struct ReplayedRun {
  std::int64_t recurrence = 0;
  int attempt = 0;
  std::size_t arm = 0;  // Index into ReplayJob::arms.
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
  Watts limit{};  // The limit after profiling, if limits were profiled.
  bool converged = false;
  int epochs = 0;                // 0: the run was not worth starting and costs nothing.
  bool profiled_limits = false;  // Whether its first epoch was spent on profiling.
  Usage usage{};                 // Includes profiling.
  Joules epoch_cost{};           // Cost of one epoch at `limit`.
};

struct ReplayedRecurrence {
  std::vector<ReplayedRun> runs{};
  Usage usage{};  // Sum over all runs.

  bool converged() const { return !runs.empty() && runs.back().converged; }
};

// Replays the recurrences of one job under one contender, the way the server would have run them.
// The contender chooses batch size and power limit of a run; one of the recorded runs of that batch
// size is drawn at random and tells how many epochs the target takes; the rules of the server
// (zeus/job/job_policy.h) decide when the run is stopped and whether another attempt follows. The
// same job, spec and seed always give the same runs. Not thread-safe.
class JobReplay {
 public:
  // `job` must outlive the replay. kInvalidArgument when the spec is invalid.
  static Result<JobReplay> Make(const ReplayJob& job, const ContenderSpec& spec,
                                std::uint64_t seed);

  // Decides a run and its outcome. The policy learns the outcome only in End(), so runs may
  // overlap.
  ReplayedRun Begin(std::int64_t recurrence, int attempt, bool exploring_under_way);
  // Reports the outcome to the policy; `earlier` is the cost of earlier attempts of the recurrence.
  // Returns whether another attempt follows.
  bool End(const ReplayedRun& run, Joules earlier);

  // Replays the next recurrence, one run after the other, until the target is reached or another
  // attempt cannot gain anything. The result is valid until the next call.
  const ReplayedRecurrence& Next();

  // Continues the job on another GPU model, whose power limits are unknown at first; numbers of
  // epochs do not depend on the model. Both jobs must have the same batch sizes; `job` must outlive
  // the replay.
  void MoveTo(const ReplayJob& job);

  BatchSizePolicy& policy() { return *contender_.policy; }
  const BatchSizePolicy& policy() const { return *contender_.policy; }

 private:
  JobReplay(const ReplayJob& job, Contender contender, bool foresees_epoch_costs,
            std::uint64_t seed);

  PlannedRun MakePlannedRun(const ReplayedRun& run) const;

  const ReplayJob* job_;
  Contender contender_;
  bool foresees_epoch_costs_;
  Random random_;
  bool any_converged_ = false;
  std::int64_t recurrence_ = 0;
  ReplayedRecurrence latest_{};
};

}  // namespace zeus::replay
