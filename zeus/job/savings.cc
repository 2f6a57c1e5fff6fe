// Two samples are compared: undisturbed runs of the default, and everything that ran under Zeus. A
// training to the target is the unit on both sides, so failed and stopped runs of Zeus are charged
// to those that reached it: the mean is a ratio of sums (amount over trainings), and its variance
// is that of the residuals of a ratio estimator. The saving is the difference of both means, in per
// cent of the baseline, with the variances added; Student's t accounts for few runs.
#include "zeus/job/savings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "zeus/base/statistics.h"
#include "zeus/base/text.h"
#include "zeus/job/job_service.h"
#include "zeus/job/memory_repository.h"

namespace zeus {
namespace {

constexpr int kLeastRuns = 2;

// The share of a normal distribution below its mean plus one standard deviation.
constexpr double kBelowOneSigma = 0.841344746068543;

// Amounts of several runs or recurrences, side by side.
struct AmountLists {
  std::vector<ChargedAmount> energy{};
  std::vector<ChargedAmount> time{};
  std::vector<ChargedAmount> cost{};

  void Add(Joules joules, Seconds seconds, Joules costs, bool reached) {
    energy.push_back({joules.value(), reached});
    time.push_back({seconds.count(), reached});
    cost.push_back({costs.value(), reached});
  }

  UsualAmounts Usual() const {
    const auto reached = std::ranges::count(energy, true, &ChargedAmount::reached);
    return {.count = static_cast<int>(reached),
            .energy = MeanPerTraining(energy),
            .time = MeanPerTraining(time),
            .cost = MeanPerTraining(cost)};
  }
};

AmountLists CollectBaseline(const SavingsBasis& basis, const std::string& gpu_model) {
  const bool other = basis.baseline_spec != nullptr;
  const JobSpec& spec = other ? *basis.baseline_spec : basis.spec;
  AmountLists lists;
  for (const Trial& trial : other ? basis.baseline_trials : basis.trials) {
    if (trial.gpu_model != gpu_model || !IsUndisturbedDefault(trial, spec)) continue;
    const Joules cost =
        other ? ComputeZeusCost(basis.spec.eta, trial.max_power, trial.energy, trial.time)
              : trial.cost;
    lists.Add(trial.energy, trial.time, cost, true);
  }
  return lists;
}

// A recurrence whose tries are being summed up.
struct TriedRecurrence : ChargedRecurrence {
  bool under_way = false;
  bool shared = false;
  bool unmeasured = false;

  bool Comparable() const { return !shared && !unmeasured; }
};

// Runs of the baseline itself and of other GPU models are not charged.
bool MayBeCharged(const Trial& trial, const std::string& gpu_model) {
  return trial.role != RunRole::kBaseline && trial.gpu_model == gpu_model;
}

std::map<std::int64_t, TriedRecurrence> Charged(std::span<const Trial> trials,
                                                const std::string& gpu_model) {
  std::map<std::int64_t, TriedRecurrence> recurrences;
  for (const Trial& trial : trials) {
    if (!MayBeCharged(trial, gpu_model)) continue;
    TriedRecurrence& sum = recurrences[trial.recurrence];
    sum.recurrence = trial.recurrence;
    sum.ended_at = std::max(sum.ended_at, trial.ended_at.value_or(trial.started_at));
    ++sum.runs;
    sum.energy += trial.energy;
    sum.time += trial.time;
    sum.cost += trial.cost;
    sum.reached = sum.reached || trial.status == TrialStatus::kConverged;
    sum.under_way = sum.under_way || IsActive(trial.status);
    sum.shared = sum.shared || trial.shared;
    sum.unmeasured = sum.unmeasured || trial.unmeasured;
  }
  return recurrences;
}

SavedAmount ComputeSaved(const MeanAmount& baseline, const UsualAmounts& zeus,
                         const MeanAmount& own) {
  const double sigma = std::hypot(baseline.sigma.value_or(0), own.sigma.value_or(0));
  SavedAmount saved{.total = zeus.count * (baseline.mean - own.mean),
                    .total_sigma = zeus.count * sigma};
  if (!(baseline.mean > 0)) return saved;
  const double ratio = own.mean / baseline.mean;
  saved.percent = 100 * (1 - ratio);
  saved.percent_sigma =
      100 / baseline.mean * std::hypot(own.sigma.value_or(0), ratio * baseline.sigma.value_or(0));
  return saved;
}

std::string WhyUnknown(const JobSavings& savings) {
  if (savings.baseline.count < kLeastRuns)
    return fmt::format(
        "there {} of the default (batch size {}, power limit as found) on {}, and {} are the "
        "least to compare with: run it as without Zeus with zeus train --baseline 3, or "
        "baseline=True in Python",
        savings.baseline.count == 1
            ? std::string("is 1 undisturbed run")
            : fmt::format("are {} undisturbed runs", savings.baseline.count),
        savings.default_batch_size, Printable(savings.gpu_model), kLeastRuns);
  if (savings.zeus.count < kLeastRuns)
    return fmt::format("{} of the job reached the target on {}, and {} are the least to compare",
                       savings.zeus.count == 1 ? "1 recurrence" : "no recurrence",
                       Printable(savings.gpu_model), kLeastRuns);
  return "";
}

}  // namespace

bool IsUndisturbedDefault(const Trial& trial, const JobSpec& spec) {
  const bool meant = trial.role == RunRole::kBaseline || spec.policy == "default";
  return meant && trial.undisturbed && trial.Comparable() && trial.attempt == 0 &&
         trial.batch_size == spec.default_batch_size && trial.status == TrialStatus::kConverged;
}

// The estimator of a ratio: with a sum over all amounts and a sum over those that reached the
// target, its variance is that of the residuals amount - mean * reached.
MeanAmount MeanPerTraining(std::span<const ChargedAmount> amounts) {
  double sum = 0;
  int reached = 0;
  for (const ChargedAmount& charged : amounts) {
    sum += charged.amount;
    reached += charged.reached ? 1 : 0;
  }
  if (reached == 0) return {};
  MeanAmount result{.mean = sum / reached};
  if (reached < kLeastRuns) return result;
  double squares = 0;
  for (const ChargedAmount& charged : amounts) {
    const double residual = charged.amount - (charged.reached ? result.mean : 0);
    squares += residual * residual;
  }
  const auto count = static_cast<double>(amounts.size());
  const double error = std::sqrt(squares * count / (count - 1)) / reached;
  result.sigma = error * StudentQuantile(kBelowOneSigma, count - 1);
  return result;
}

std::vector<ChargedRecurrence> ChargedRecurrences(std::span<const Trial> trials,
                                                  const std::string& gpu_model) {
  std::vector<ChargedRecurrence> list;
  for (const auto& [number, recurrence] : Charged(trials, gpu_model))
    if (!recurrence.under_way && recurrence.Comparable()) list.push_back(recurrence);
  return list;
}

JobSavings ComputeSavings(const SavingsBasis& basis) {
  const JobSpec& compared = basis.baseline_spec != nullptr ? *basis.baseline_spec : basis.spec;
  JobSavings savings{.job_id = basis.spec.id,
                     .gpu_model = basis.gpu_model.empty() ? basis.spec.gpu_model : basis.gpu_model,
                     .baseline_job = compared.id,
                     .default_batch_size = compared.default_batch_size};
  savings.baseline = CollectBaseline(basis, savings.gpu_model).Usual();
  AmountLists lists;
  for (const auto& [number, recurrence] : Charged(basis.trials, savings.gpu_model)) {
    if (recurrence.under_way) continue;
    if (!recurrence.Comparable()) {
      (recurrence.shared ? savings.shared : savings.unmeasured) += recurrence.runs;
      continue;
    }
    savings.runs += recurrence.runs;
    lists.Add(recurrence.energy, recurrence.time, recurrence.cost, recurrence.reached);
  }
  savings.zeus = lists.Usual();
  savings.unknown_because = WhyUnknown(savings);
  if (!savings.unknown_because.empty()) return savings;
  savings.saved = JobSavings::Saved{
      .energy = ComputeSaved(savings.baseline.energy, savings.zeus, savings.zeus.energy),
      .time = ComputeSaved(savings.baseline.time, savings.zeus, savings.zeus.time),
      .cost = ComputeSaved(savings.baseline.cost, savings.zeus, savings.zeus.cost)};
  return savings;
}

void AddSavedCarbon(const CarbonAccounting& accounting, std::span<const Trial> trials,
                    JobSavings& savings) {
  if (!accounting.wanted() || !savings.saved) return;
  const SavedAmount& saved = savings.saved->energy;
  const auto recurrences = Charged(trials, savings.gpu_model);
  Joules charged{};
  std::vector<const Trial*> runs;
  for (const Trial& trial : trials) {
    if (!MayBeCharged(trial, savings.gpu_model)) continue;
    const TriedRecurrence& recurrence = recurrences.at(trial.recurrence);
    if (recurrence.under_way || !recurrence.Comparable()) continue;
    charged += trial.energy;
    runs.push_back(&trial);
  }
  if (!(charged > Joules(0))) return;
  // Prices may have tiers, which know no negative energy: the sign is put back afterwards.
  const double sign = saved.total < 0 ? -1 : 1;
  EnergyUse use{.pieces = {}, .sigma = Joules(saved.total_sigma)};
  for (const Trial* const trial : runs)
    use.pieces.push_back(
        {.begin = trial->started_at,
         .end = std::max(trial->ended_at.value_or(trial->started_at), trial->started_at),
         .energy = std::abs(saved.total) / charged.value() * trial->energy});
  CarbonReport report = accounting.Of(use);
  if (report.emissions) report.emissions->amount = sign * report.emissions->amount;
  if (report.cost) report.cost->amount = sign * report.cost->amount;
  savings.saved_carbon = std::move(report);
}

Result<JobSavings> GetSavingsWithCarbon(JobService& service, const SavingsQuery& query,
                                        const CarbonAccounting& accounting) {
  ZEUS_TRY(JobSavings savings, service.GetSavings(query));
  if (!accounting.wanted() || !savings.saved) return savings;
  ZEUS_TRY(const std::vector<Trial> trials, AllTrials(service, query.job_id));
  AddSavedCarbon(accounting, trials, savings);
  return savings;
}

}  // namespace zeus
