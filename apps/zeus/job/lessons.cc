#include "apps/zeus/job/lessons.h"

#include <cmath>
#include <map>

#include "apps/zeus/job/pages.h"
#include "zeus/base/statistics.h"

namespace zeus::cli {
namespace {

// So many of the latest recurrences say what is normal now.
constexpr std::size_t kLatest = 20;

void Add(RunAmounts& sum, const Trial& trial) {
  ++sum.runs;
  sum.energy += trial.energy;
  sum.time += trial.time;
  sum.cost += trial.cost;
}

MeanAmount MeanOf(const std::vector<double>& values) {
  const SampleSummary sample = Summarize(values);
  if (sample.count < 2) return {.mean = sample.mean};
  return {.mean = sample.mean, .sigma = sample.StandardError()};
}

// On average over at most `most` of the latest that reached the target. Tries that did not are part
// of what a batch size costs.
template <class Condition>
std::optional<UsualAmounts> Usual(const std::vector<RecurrenceAmounts>& recurrences,
                                  std::size_t most, const Condition& condition) {
  std::vector<double> energy;
  std::vector<double> time;
  std::vector<double> cost;
  for (auto it = recurrences.rbegin(); it != recurrences.rend() && cost.size() < most; ++it) {
    if (!it->converged || !condition(*it)) continue;
    energy.push_back(it->energy.value());
    time.push_back(it->time.count());
    cost.push_back(it->cost.value());
  }
  if (cost.empty()) return std::nullopt;
  return UsualAmounts{.recurrences = static_cast<int>(cost.size()),
                      .energy = MeanOf(energy),
                      .time = MeanOf(time),
                      .cost = MeanOf(cost)};
}

std::vector<RecurrenceAmounts> ByRecurrence(const std::vector<Trial>& trials) {
  std::map<std::int64_t, RecurrenceAmounts> recurrences;
  for (const Trial& trial : trials) {
    RecurrenceAmounts& sum = recurrences[trial.recurrence];
    if (sum.tries++ == 0) {
      sum.recurrence = trial.recurrence;
      sum.first_batch_size = trial.batch_size;
      sum.gpu_model = trial.gpu_model;
      sum.role = trial.role;
    }
    sum.batch_size = trial.batch_size;
    sum.converged = sum.converged || trial.status == TrialStatus::kConverged;
    sum.energy += trial.energy;
    sum.time += trial.time;
    sum.cost += trial.cost;
  }
  std::vector<RecurrenceAmounts> list;
  for (const auto& [number, amounts] : recurrences) list.push_back(amounts);
  return list;
}

double RelativeSigma(const MeanAmount& amount) { return *amount.sigma / amount.mean; }

MeanAmount PercentBelow(const MeanAmount& amount, const MeanAmount& reference) {
  if (!(reference.mean > 0)) return {};
  const double ratio = amount.mean / reference.mean;
  MeanAmount below{.mean = 100 * (1 - ratio)};
  if (amount.sigma && reference.sigma && amount.mean > 0)
    below.sigma = 100 * ratio * std::hypot(RelativeSigma(amount), RelativeSigma(reference));
  return below;
}

}  // namespace

void Conclude(Lessons& lessons) {
  const int best = lessons.arms.best_batch_size;
  const std::string& model = lessons.arms.gpu_model;
  lessons.recurrences = ByRecurrence(lessons.trials);
  lessons.total = {};
  lessons.exploration = {};
  for (const Trial& trial : lessons.trials) {
    Add(lessons.total, trial);
    if (trial.batch_size != best || trial.status != TrialStatus::kConverged)
      Add(lessons.exploration, trial);
    if (trial.batch_size == best && trial.power_limit && trial.gpu_model == model)
      lessons.power_limit = trial.power_limit;
  }
  const auto begun_with = [&model](int batch_size) {
    return [batch_size, &model](const RecurrenceAmounts& recurrence) {
      return recurrence.first_batch_size == batch_size && recurrence.gpu_model == model;
    };
  };
  // What it took to find it out is no measure of the best.
  const auto settled = [is_best = begun_with(best)](const RecurrenceAmounts& recurrence) {
    return is_best(recurrence) && recurrence.role != RunRole::kExploring;
  };
  lessons.at_best = Usual(lessons.recurrences, kLatest, settled);
  if (!lessons.at_best) lessons.at_best = Usual(lessons.recurrences, kLatest, begun_with(best));
  lessons.at_default = Usual(lessons.recurrences, lessons.recurrences.size(),
                             begun_with(lessons.job.spec.default_batch_size));
}

Result<Lessons> CollectLessons(JobService& service, const std::string& job_id,
                               const std::string& gpu_model) {
  Lessons lessons;
  ZEUS_TRY(lessons.job, service.GetJob(job_id));
  ZEUS_TRY(lessons.arms, service.GetArms(job_id, gpu_model));
  ZEUS_TRY(lessons.trials, AllTrials(service, job_id));
  Conclude(lessons);
  return lessons;
}

void ReckonAs(const JobSpec& spec, Lessons& lessons) {
  for (Trial& trial : lessons.trials)
    trial.cost = ZeusCostOf(spec.eta, spec.max_power, trial.energy, trial.time);
  Conclude(lessons);
}

std::optional<Savings> SavedAgainst(const std::optional<UsualAmounts>& best,
                                    const std::optional<UsualAmounts>& reference) {
  if (!best || !reference) return std::nullopt;
  return Savings{.energy = PercentBelow(best->energy, reference->energy),
                 .time = PercentBelow(best->time, reference->time),
                 .cost = PercentBelow(best->cost, reference->cost)};
}

}  // namespace zeus::cli
