#include "apps/zeus/job/lessons.h"

#include <cmath>
#include <map>
#include <utility>

#include "zeus/job/pages.h"

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

// On average over the latest that reached the target. Tries that did not are part of what a batch
// size costs.
template <class Condition>
std::optional<UsualAmounts> Usual(const std::vector<RecurrenceAmounts>& recurrences,
                                  const Condition& condition) {
  std::vector<ChargedAmount> energy;
  std::vector<ChargedAmount> time;
  std::vector<ChargedAmount> cost;
  for (auto it = recurrences.rbegin(); it != recurrences.rend() && cost.size() < kLatest; ++it) {
    if (!it->converged || !condition(*it)) continue;
    energy.push_back({.amount = it->energy.value()});
    time.push_back({.amount = it->time.count()});
    cost.push_back({.amount = it->cost.value()});
  }
  if (cost.empty()) return std::nullopt;
  return UsualAmounts{.count = static_cast<int>(cost.size()),
                      .energy = MeanPerTraining(energy),
                      .time = MeanPerTraining(time),
                      .cost = MeanPerTraining(cost)};
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
    sum.shared = sum.shared || trial.shared;
    sum.energy += trial.energy;
    sum.time += trial.time;
    sum.cost += trial.cost;
  }
  std::vector<RecurrenceAmounts> list;
  for (const auto& [number, amounts] : recurrences) list.push_back(amounts);
  return list;
}

MeasuredArm Measured(const Lessons& lessons, int batch_size) {
  MeasuredArm arm{.batch_size = batch_size};
  std::vector<ChargedAmount> costs;
  for (const Trial& trial : lessons.trials) {
    const bool ended =
        trial.status == TrialStatus::kConverged || trial.status == TrialStatus::kStopped;
    if (trial.batch_size != batch_size || trial.gpu_model != lessons.arms.gpu_model || !ended ||
        trial.shared || trial.role == RunRole::kBaseline)
      continue;
    const bool reached = trial.status == TrialStatus::kConverged;
    ++arm.runs;
    if (reached) ++arm.reached;
    costs.push_back({.amount = trial.cost.value(), .reached = reached});
  }
  arm.cost = MeanPerTraining(costs);
  return arm;
}

void MeasureArms(Lessons& lessons) {
  lessons.measured.clear();
  lessons.cheapest.reset();
  double least = HUGE_VAL;
  for (const ArmBelief& arm : lessons.arms.arms) {
    const MeasuredArm& measured = lessons.measured.emplace_back(Measured(lessons, arm.batch_size));
    if (measured.reached == 0 || measured.cost.mean >= least) continue;
    least = measured.cost.mean;
    lessons.cheapest = arm.batch_size;
  }
}

}  // namespace

void Conclude(Lessons& lessons) {
  const int best = lessons.arms.best_batch_size;
  const std::string& model = lessons.arms.gpu_model;
  lessons.recurrences = ByRecurrence(lessons.trials);
  lessons.total = {};
  lessons.baseline = {};
  lessons.exploration = {};
  for (const Trial& trial : lessons.trials) {
    Add(lessons.total, trial);
    if (trial.role == RunRole::kBaseline) {
      Add(lessons.baseline, trial);
      continue;
    }
    if (trial.role == RunRole::kExploring || trial.status != TrialStatus::kConverged)
      Add(lessons.exploration, trial);
    if (trial.batch_size == best && trial.power_limit && trial.gpu_model == model)
      lessons.power_limit = trial.power_limit;
  }
  const auto with_best = [best, &model](const RecurrenceAmounts& recurrence) {
    return recurrence.first_batch_size == best && recurrence.gpu_model == model &&
           !recurrence.shared && recurrence.role != RunRole::kBaseline;
  };
  // The exploration that found the best is not what using it takes.
  lessons.at_best = Usual(lessons.recurrences, [&](const RecurrenceAmounts& recurrence) {
    return with_best(recurrence) && recurrence.role != RunRole::kExploring;
  });
  lessons.at_best_explored = !lessons.at_best;
  if (!lessons.at_best) lessons.at_best = Usual(lessons.recurrences, with_best);
  MeasureArms(lessons);
}

Result<Lessons> CollectLessons(JobService& service, const LessonsQuery& query) {
  Lessons lessons;
  ZEUS_TRY(lessons.job, service.GetJob(query.job));
  ZEUS_TRY(lessons.arms, service.GetArms(query.job, query.gpu_model));
  ZEUS_TRY(lessons.trials, AllTrials(service, query.job));
  ZEUS_TRY(lessons.savings, service.GetSavings({.job_id = query.job,
                                                .gpu_model = query.gpu_model,
                                                .baseline_job = query.baseline_job}));
  Conclude(lessons);
  return lessons;
}

}  // namespace zeus::cli
