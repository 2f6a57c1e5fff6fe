// The runs of a job have recorded energy and time, so that their cost can be computed under any
// eta. A new policy observes them in the order in which they ended. The cost of an epoch is only
// recorded as a cost; the share of the run's mean cost per epoch that it had under the job's eta is
// taken to be the same under another one.
#include "zeus/job/other_eta.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/job/job_policy.h"

namespace zeus {
namespace {

bool IsTaught(const Trial& trial) {
  const bool ended =
      trial.status == TrialStatus::kConverged || trial.status == TrialStatus::kStopped;
  return ended && trial.epochs > 0 && trial.role != RunRole::kBaseline && trial.Comparable();
}

Joules CostUnder(double eta, const Trial& trial) {
  return ComputeZeusCost(eta, trial.max_power, trial.energy, trial.time);
}

RunResult ResultUnder(double eta, const Trial& trial, Joules earlier) {
  const Joules cost = CostUnder(eta, trial);
  std::optional<Joules> epoch_cost;
  if (trial.epoch_cost && trial.cost > Joules(0))
    epoch_cost = cost * (*trial.epoch_cost / trial.cost);
  return MakeResult({.recurrence = trial.recurrence,
                     .attempt = trial.attempt,
                     .gpu_model = trial.gpu_model,
                     .batch_size = trial.batch_size,
                     .role = trial.role},
                    {.converged = trial.status == TrialStatus::kConverged,
                     .epochs = trial.epochs,
                     .cost = cost,
                     .epoch_cost = epoch_cost},
                    earlier);
}

// A job with the same spec under another eta, whose policy has observed these trials.
Result<Job> Taught(const Job& job, std::span<const Trial> trials, double eta) {
  Job taught = job;
  taught.spec.eta = eta;
  taught.policy_state = nullptr;
  ZEUS_TRY(JobPolicy policies, JobPolicy::Restore(taught));
  std::vector<const Trial*> ended;
  for (const Trial& trial : trials)
    if (IsTaught(trial)) ended.push_back(&trial);
  std::ranges::stable_sort(ended, {}, [](const Trial* t) { return t->ended_at; });
  std::map<std::int64_t, Joules> stopped;  // Cost of stopped tries, by recurrence.
  for (const Trial* const trial : ended) {
    ZEUS_TRY(BatchSizePolicy * policy, policies.For(trial->gpu_model));
    Joules& earlier = stopped[trial->recurrence];
    policy->Observe(ResultUnder(eta, *trial, earlier));
    if (trial->status == TrialStatus::kStopped) earlier += CostUnder(eta, *trial);
  }
  taught.policy_state = policies.Save();
  return taught;
}

const MeasuredArm* ArmOf(const std::vector<MeasuredArm>& arms, int batch_size) {
  const auto found = std::ranges::find(arms, batch_size, &MeasuredArm::batch_size);
  return found != arms.end() && found->reached > 0 ? &*found : nullptr;
}

RelativeChange Change(const MeanAmount& from, const MeanAmount& to) {
  RelativeChange change{.percent = 100 * (to.mean / from.mean - 1)};
  if (from.sigma && to.sigma)
    change.sigma = 100 / from.mean * std::hypot(*to.sigma, to.mean / from.mean * *from.sigma);
  return change;
}

// Runs that count for this model and whose limits Zeus has chosen.
bool AnyLimited(std::span<const Trial> trials, const std::string& gpu_model) {
  return std::ranges::any_of(trials, [&](const Trial& trial) {
    return IsTaught(trial) && trial.gpu_model == gpu_model && trial.power_limit &&
           !trial.undisturbed;
  });
}

std::string StoppedNote(const Job& job, std::span<const Trial> trials, const OtherEta& other) {
  const auto stopped = std::ranges::count_if(trials, [&](const Trial& trial) {
    return IsTaught(trial) && trial.gpu_model == other.arms.gpu_model &&
           trial.status == TrialStatus::kStopped && trial.epochs < job.spec.max_epochs;
  });
  if (stopped == 0) return "";
  if (stopped == 1)
    return fmt::format(
        "1 run was stopped early by what it cost at eta {:g}: whether eta {:g} would have let it "
        "go on, and to what end, is not known.",
        job.spec.eta, other.eta);
  return fmt::format(
      "{} runs were stopped early by what they cost at eta {:g}: whether eta {:g} would have let "
      "them go on, and to what end, is not known.",
      stopped, job.spec.eta, other.eta);
}

std::string UntriedNote(const OtherEta& other) {
  std::vector<int> untried;
  for (const MeasuredArm& arm : other.measured)
    if (arm.runs == 0) untried.push_back(arm.batch_size);
  if (untried.empty()) return "";
  if (untried.size() == 1)
    return fmt::format(
        "Batch size {} never ran on this GPU model: another eta might have tried it.",
        untried.front());
  return fmt::format(
      "Batch sizes {} never ran on this GPU model: another eta might have tried them.",
      fmt::join(untried, ", "));
}

void AddNotes(const Job& job, std::span<const Trial> trials, OtherEta& other) {
  if (AnyLimited(trials, other.arms.gpu_model))
    other.notes.push_back(fmt::format(
        "The power limits are those that were chosen for eta {:g}: others may suit eta {:g} "
        "better, and what a training takes at those is not known.",
        job.spec.eta, other.eta));
  for (std::string note : {StoppedNote(job, trials, other), UntriedNote(other)})
    if (!note.empty()) other.notes.push_back(std::move(note));
}

}  // namespace

Result<OtherEta> ReplayUnderEta(const Job& job, std::span<const Trial> trials,
                                const std::string& gpu_model, double eta) {
  if (!(eta >= 0 && eta <= 1)) return FieldError("eta", "must be between 0 and 1");
  const bool exploring = std::ranges::any_of(trials, [](const Trial& trial) {
    return IsActive(trial.status) && trial.role == RunRole::kExploring;
  });
  ZEUS_TRY(const JobArms own, DescribeArms(job, gpu_model, exploring));
  OtherEta other{.eta = eta, .arms = own, .own_best = own.best_batch_size};
  if (eta != job.spec.eta) {
    ZEUS_TRY(const Job taught, Taught(job, trials, eta));
    ZEUS_TRY(other.arms, DescribeArms(taught, gpu_model, exploring));
  }
  other.measured = MeasureArms(job.spec, trials, other.arms.gpu_model, eta);
  if (eta == job.spec.eta) return other;
  AddNotes(job, trials, other);
  const MeasuredArm* const from = ArmOf(other.measured, other.own_best);
  const MeasuredArm* const to = ArmOf(other.measured, other.arms.best_batch_size);
  if (from == nullptr || to == nullptr || from == to) return other;
  if (from->energy.mean > 0) other.energy = Change(from->energy, to->energy);
  if (from->time.mean > 0) other.time = Change(from->time, to->time);
  return other;
}

}  // namespace zeus
