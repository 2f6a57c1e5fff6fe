#include "zeus/replay/job_replay.h"

#include <optional>
#include <utility>

#include "zeus/job/job_policy.h"

namespace zeus::replay {

JobReplay::JobReplay(const ReplayJob& job, Contender contender, bool foresees_epoch_costs,
                     std::uint64_t seed)
    : job_(&job),
      contender_(std::move(contender)),
      foresees_epoch_costs_(foresees_epoch_costs),
      random_(Random(seed).Fork("recorded runs")) {}

Result<JobReplay> JobReplay::Make(const ReplayJob& job, const ContenderSpec& spec,
                                  std::uint64_t seed) {
  ZEUS_TRY(Contender contender, MakeContender(job, spec, seed));
  return JobReplay(job, std::move(contender), spec.foresees_epoch_costs, seed);
}

void JobReplay::MoveTo(const ReplayJob& job) {
  job_ = &job;
  contender_.limits->StartOver(job.arms.size());
}

PlannedRun JobReplay::MakePlannedRun(const ReplayedRun& run) const {
  return {.recurrence = run.recurrence,
          .attempt = run.attempt,
          .gpu_model = job_->gpu_model,
          .batch_size = run.batch_size,
          .role = run.role};
}

ReplayedRun JobReplay::Begin(std::int64_t recurrence, int attempt, bool exploring_under_way) {
  BatchSizePolicy& policy = *contender_.policy;
  const Choice choice = policy.Choose({.recurrence = recurrence,
                                       .attempt = attempt,
                                       .gpu_model = job_->gpu_model,
                                       .exploring = exploring_under_way});
  ReplayedRun run{.recurrence = recurrence,
                  .attempt = attempt,
                  .arm = job_->FindArmIndex(choice.batch_size),
                  .batch_size = choice.batch_size,
                  .role = choice.role};
  const ReplayArm& arm = job_->arms[run.arm];
  const LimitChoice limit = contender_.limits->Next(run.arm, arm);
  const Usage& epoch = arm.limits[limit.limit].epoch;
  run.limit = arm.limits[limit.limit].limit;
  run.epoch_cost = epoch.cost;
  const std::optional<int>& target =
      arm.epochs_to_target[random_.Below(arm.epochs_to_target.size())];
  const RunBound bound = ComputeBound(policy, MakePlannedRun(run), epoch.cost, job_->max_epochs);
  const bool cost_is_known = foresees_epoch_costs_ ||
                             policy.ProfiledEpochCost(job_->gpu_model, run.batch_size).has_value();
  if (!bound.begins && cost_is_known) return run;
  contender_.limits->Begun(run.arm);
  run.converged = target && *target <= bound.last_epoch;
  run.epochs = run.converged ? *target : bound.last_epoch;
  run.profiled_limits = limit.profiles;
  run.usage = run.epochs * epoch;
  if (limit.profiles) {
    run.usage = (run.epochs - 1) * epoch;
    run.usage += arm.profiling_epoch;
  }
  return run;
}

bool JobReplay::End(const ReplayedRun& run, Joules earlier) {
  const PlannedRun planned = MakePlannedRun(run);
  RunEnd end{.converged = run.converged, .epochs = run.epochs, .cost = run.usage.cost};
  if (run.epochs > 0 || foresees_epoch_costs_) end.epoch_cost = run.epoch_cost;
  contender_.policy->Observe(MakeResult(planned, end, earlier));
  any_converged_ |= run.converged;
  return !run.converged && AnotherTryMayHelp(*contender_.policy, planned, any_converged_);
}

const ReplayedRecurrence& JobReplay::Next() {
  latest_.runs.clear();
  latest_.usage = {};
  for (bool another = true; another;) {
    const ReplayedRun& run =
        latest_.runs.emplace_back(Begin(recurrence_, static_cast<int>(latest_.runs.size()), false));
    another = End(run, latest_.usage.cost);
    latest_.usage += run.usage;
  }
  ++recurrence_;
  return latest_;
}

}  // namespace zeus::replay
