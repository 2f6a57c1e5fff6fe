#include "apps/zeus/job/lessons.h"

#include <algorithm>
#include <map>

#include "apps/zeus/job/pages.h"

namespace zeus::cli {
namespace {

// So many of the latest runs say what is normal now.
constexpr int kLatest = 10;

void Add(RunAmounts& sum, const Trial& trial) {
  ++sum.runs;
  sum.energy += trial.energy;
  sum.time += trial.time;
  sum.cost += trial.cost;
}

// On average over at most `most` of the latest that reached the target.
std::optional<RunAmounts> Usual(const std::vector<Trial>& trials, int batch_size,
                                const std::string& gpu_model, int most) {
  RunAmounts sum;
  for (auto trial = trials.rbegin(); trial != trials.rend() && sum.runs < most; ++trial)
    if (trial->status == TrialStatus::kConverged && trial->batch_size == batch_size &&
        trial->gpu_model == gpu_model)
      Add(sum, *trial);
  if (sum.runs == 0) return std::nullopt;
  const double runs = sum.runs;
  return RunAmounts{.runs = sum.runs,
                    .energy = sum.energy / runs,
                    .time = sum.time / runs,
                    .cost = sum.cost / runs};
}

std::vector<RecurrenceAmounts> ByRecurrence(const std::vector<Trial>& trials) {
  std::map<std::int64_t, RecurrenceAmounts> recurrences;
  for (const Trial& trial : trials) {
    RecurrenceAmounts& sum = recurrences[trial.recurrence];
    sum.recurrence = trial.recurrence;
    ++sum.tries;
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

double PercentBelow(double value, double reference) {
  return reference > 0 ? 100 * (1 - value / reference) : 0;
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
  lessons.at_best = Usual(lessons.trials, best, model, kLatest);
  lessons.at_default = Usual(lessons.trials, lessons.job.spec.default_batch_size, model,
                             static_cast<int>(lessons.trials.size()));
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

std::optional<Savings> SavedAgainst(const std::optional<RunAmounts>& best,
                                    const std::optional<RunAmounts>& reference) {
  if (!best || !reference) return std::nullopt;
  return Savings{.energy = PercentBelow(best->energy.value(), reference->energy.value()),
                 .time = PercentBelow(best->time.count(), reference->time.count()),
                 .cost = PercentBelow(best->cost.value(), reference->cost.value())};
}

}  // namespace zeus::cli
