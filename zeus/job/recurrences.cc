#include "zeus/job/recurrences.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace zeus {
namespace {

// The first disturbed run with each batch size on each GPU model.
class FirstRuns {
 public:
  bool IsFirst(const Trial& trial) {
    if (trial.role == RunRole::kBaseline || trial.undisturbed || trial.epochs == 0) return false;
    return seen_.emplace(trial.gpu_model, trial.batch_size).second;
  }

 private:
  std::set<std::pair<std::string, int>> seen_{};
};

void Begin(const Trial& trial, RecurrenceAmounts& sum) {
  sum.recurrence = trial.recurrence;
  sum.first_batch_size = trial.batch_size;
  sum.gpu_model = trial.gpu_model;
  sum.role = trial.role;
  sum.started_at = trial.started_at;
}

void Add(const Trial& trial, RecurrenceAmounts& sum) {
  if (sum.tries++ == 0) Begin(trial, sum);
  sum.batch_size = trial.batch_size;
  sum.converged = sum.converged || trial.status == TrialStatus::kConverged;
  sum.under_way = sum.under_way || IsActive(trial.status);
  sum.failed =
      sum.failed || trial.status == TrialStatus::kFailed || trial.status == TrialStatus::kExpired;
  sum.shared = sum.shared || trial.shared;
  sum.unmeasured = sum.unmeasured || trial.unmeasured;
  sum.ended_at = std::max(sum.ended_at, trial.ended_at);
  sum.energy += trial.energy;
  sum.time += trial.time;
  sum.cost += trial.cost;
}

}  // namespace

std::vector<RecurrenceAmounts> ByRecurrence(std::span<const Trial> trials) {
  std::map<std::int64_t, RecurrenceAmounts> recurrences;
  FirstRuns first_runs;
  for (const Trial& trial : trials) {
    RecurrenceAmounts& sum = recurrences[trial.recurrence];
    Add(trial, sum);
    sum.profiling = first_runs.IsFirst(trial) || sum.profiling;
  }
  std::vector<RecurrenceAmounts> list;
  list.reserve(recurrences.size());
  for (auto& [number, sum] : recurrences) {
    if (sum.under_way) sum.ended_at.reset();
    list.push_back(std::move(sum));
  }
  return list;
}

std::vector<MeasuredArm> MeasureArms(const JobSpec& spec, std::span<const Trial> trials,
                                     const std::string& gpu_model, double eta) {
  struct Amounts {
    std::vector<ChargedAmount> energy{};
    std::vector<ChargedAmount> time{};
    std::vector<ChargedAmount> cost{};
  };
  std::map<int, Amounts> amounts;
  for (const Trial& trial : trials) {
    const bool reached = trial.status == TrialStatus::kConverged;
    const bool ended = reached || trial.status == TrialStatus::kStopped;
    if (!ended || trial.gpu_model != gpu_model || !trial.Comparable() ||
        trial.role == RunRole::kBaseline)
      continue;
    Amounts& sums = amounts[trial.batch_size];
    const Joules cost = eta == spec.eta
                            ? trial.cost
                            : ComputeZeusCost(eta, trial.max_power, trial.energy, trial.time);
    sums.energy.push_back({.amount = trial.energy.value(), .reached = reached});
    sums.time.push_back({.amount = trial.time.count(), .reached = reached});
    sums.cost.push_back({.amount = cost.value(), .reached = reached});
  }
  std::vector<MeasuredArm> arms;
  for (const int batch_size : spec.batch_sizes) {
    const Amounts& sums = amounts[batch_size];
    const auto reached = std::ranges::count(sums.cost, true, &ChargedAmount::reached);
    arms.push_back({.batch_size = batch_size,
                    .runs = static_cast<int>(sums.cost.size()),
                    .reached = static_cast<int>(reached),
                    .energy = MeanPerTraining(sums.energy),
                    .time = MeanPerTraining(sums.time),
                    .cost = MeanPerTraining(sums.cost)});
  }
  return arms;
}

}  // namespace zeus
