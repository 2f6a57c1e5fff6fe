#include "zeus/replay/job_replay.h"

#include <algorithm>
#include <utility>

namespace zeus::replay {
namespace {

constexpr int kMostRuns = 20;
constexpr int kLatest = 5;

}  // namespace

JobReplay::JobReplay(const ReplayJob& job, std::uint64_t seed)
    : job_(&job), random_(Random(seed).Fork("recorded runs")) {}

void JobReplay::MoveTo(const ReplayJob& job) {
  job_ = &job;
  profiled_.clear();
}

ReplayedRecurrence JobReplay::Next(BatchSizePolicy& policy) {
  ReplayedRecurrence done;
  Situation situation{.recurrence = recurrence_++, .gpu_model = job_->gpu_model};
  for (; situation.attempt < kMostRuns; ++situation.attempt) {
    done.runs.push_back(Run(policy, situation, done.usage.cost));
    done.usage += done.runs.back().usage;
    if (done.runs.back().converged) break;
  }
  return done;
}

ReplayedRun JobReplay::Run(BatchSizePolicy& policy, const Situation& situation,
                           Joules cost_so_far) {
  ReplayedRun run{.choice = policy.Choose(situation)};
  const ReplayArm& arm = job_->arm(run.choice.batch_size);
  const PlannedRun planned{.recurrence = situation.recurrence,
                           .attempt = situation.attempt,
                           .gpu_model = situation.gpu_model,
                           .batch_size = run.choice.batch_size,
                           .role = run.choice.role};
  // As the reference does, also for a batch size whose epoch cost nobody could know yet. Policies
  // that mind tell it from ProfiledEpochCost().
  const int budget = policy.EpochBudget(planned, arm.epoch.cost);
  const auto target = arm.epochs_to_target[random_.Below(arm.epochs_to_target.size())];
  run.converged = target && *target <= budget;
  run.epochs = run.converged ? *target : budget;
  if (run.epochs > 0) {
    run.usage = run.epochs * arm.epoch;
    if (profiled_.insert(arm.batch_size).second) {
      run.usage = (run.epochs - 1) * arm.epoch;
      run.usage += arm.profiling_epoch;
    }
  }
  policy.Observe({.run = planned,
                  .converged = run.converged,
                  .epochs = run.epochs,
                  .cost = run.usage.cost,
                  .recurrence_cost = cost_so_far + run.usage.cost,
                  .epoch_cost = arm.epoch.cost});
  return run;
}

ReplaySummary Summarize(const ReplayJob& job, std::span<const ReplayedRecurrence> recurrences) {
  const Joules least = job.OracleCost();
  const Usage usual = job.DefaultUsage();
  ReplaySummary summary;
  for (std::size_t t = 0; t < recurrences.size(); ++t) {
    summary.regret += recurrences[t].usage.cost / least - 1;
    if (t + 1 == 50) summary.regret_of_50 = summary.regret;
  }
  for (const ReplayedRecurrence& latest : recurrences.last(kLatest)) {
    summary.last_five_energy += latest.usage.energy / usual.energy / kLatest;
    summary.last_five_time += latest.usage.time / usual.time / kLatest;
    summary.last_five_cost += latest.usage.cost / least / kLatest;
  }
  return summary;
}

std::vector<ReplaySummary> ReplaySeeds(const ReplayJob& job, std::string_view policy, int seeds) {
  std::vector<ReplaySummary> summaries;
  std::vector<ReplayedRecurrence> recurrences(static_cast<std::size_t>(job.recurrences()));
  for (int seed = 0; seed < seeds; ++seed) {
    auto made = MakePolicy(job.Spec(policy, static_cast<std::uint64_t>(seed)));
    JobReplay replay(job, static_cast<std::uint64_t>(seed));
    for (ReplayedRecurrence& recurrence : recurrences) recurrence = replay.Next(*made.value());
    summaries.push_back(Summarize(job, recurrences));
  }
  return summaries;
}

}  // namespace zeus::replay
