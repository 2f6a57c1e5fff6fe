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

// What was decided for a run, and what comes of it.
struct ReplayedRun {
  std::int64_t recurrence = 0;
  int attempt = 0;
  std::size_t arm = 0;  // Index into ReplayJob::arms.
  int batch_size = 0;
  RunRole role = RunRole::kExploiting;
  Watts limit{};  // After the profiling of limits, if there was any.
  bool converged = false;
  int epochs = 0;                // 0: not worth starting; it was not begun and costs nothing.
  bool profiled_limits = false;  // In its first epoch.
  Usage usage{};                 // Profiling included.
  Joules epoch_cost{};           // Of one epoch at `limit`.
};

struct ReplayedRecurrence {
  std::vector<ReplayedRun> runs{};
  Usage usage{};  // Of all runs.

  bool converged() const { return !runs.empty() && runs.back().converged; }
};

// The recurrences of one recorded job under one contender. For each run one of the recorded ones of
// its batch size is drawn; otherwise a run lives by the rules of the server (zeus/job/run_rules.h).
// Deterministic: the same job, spec and seed give the same runs. One owner.
class JobReplay {
 public:
  // `job` must outlive it. kInvalidArgument when the spec makes no sense.
  static Result<JobReplay> Make(const ReplayJob& job, const ContenderSpec& spec,
                                std::uint64_t seed);

  // Decides a run and what will come of it. The policy learns of it only with End(), so that runs
  // may overlap.
  ReplayedRun Begin(std::int64_t recurrence, int attempt, bool exploring_under_way);
  // Teaches the policy; `earlier` is what earlier tries of the recurrence cost. True: another try
  // is to follow.
  bool End(const ReplayedRun& run, Joules earlier);

  // The next recurrence, one run after the other, until the target is reached or nothing can be
  // gained from another try. Valid until the next call.
  const ReplayedRecurrence& Next();

  // From now on, the same job on another GPU model, whose power limits are unknown. Numbers of
  // epochs do not depend on it. Both must have the same batch sizes; `job` must outlive it.
  void MoveTo(const ReplayJob& job);

  BatchSizePolicy& policy() { return *contender_.policy; }
  const BatchSizePolicy& policy() const { return *contender_.policy; }

 private:
  JobReplay(const ReplayJob& job, Contender contender, bool foresees_epoch_costs,
            std::uint64_t seed);

  PlannedRun PlanOf(const ReplayedRun& run) const;

  const ReplayJob* job_;
  Contender contender_;
  bool foresees_epoch_costs_;
  Random random_;
  bool any_converged_ = false;
  std::int64_t recurrence_ = 0;
  ReplayedRecurrence latest_{};
};

}  // namespace zeus::replay
