#include "apps/zeus/job/lessons.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/epoch_goal.h"
#include "zeus/job/memory_repository.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/overviews.h"

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

void FindCheapest(Lessons& lessons) {
  lessons.cheapest.reset();
  double least = HUGE_VAL;
  for (const MeasuredArm& measured : lessons.measured) {
    if (measured.reached == 0 || measured.cost.mean >= least) continue;
    least = measured.cost.mean;
    lessons.cheapest = measured.batch_size;
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
           recurrence.Comparable() && recurrence.role != RunRole::kBaseline;
  };
  // The exploration that found the best is not what using it takes.
  lessons.at_best = Usual(lessons.recurrences, [&](const RecurrenceAmounts& recurrence) {
    return with_best(recurrence) && recurrence.role != RunRole::kExploring;
  });
  lessons.at_best_explored = !lessons.at_best;
  if (!lessons.at_best) lessons.at_best = Usual(lessons.recurrences, with_best);
  lessons.measured = MeasureArms(lessons.job.spec, lessons.trials, model, lessons.job.spec.eta);
  FindCheapest(lessons);
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

namespace {

Json ToJson(const RunAmounts& amounts) {
  return {{"runs", amounts.runs},
          {"energy_joules", amounts.energy.value()},
          {"time_seconds", amounts.time.count()},
          {"cost_joules", amounts.cost.value()}};
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json ToJson(const std::optional<UsualAmounts>& amounts) {
  if (!amounts) return {};
  return {{"recurrences", amounts->count},
          {"energy_joules", amounts->energy.mean},
          {"energy_sigma_joules", OrNull(amounts->energy.sigma)},
          {"time_seconds", amounts->time.mean},
          {"time_sigma_seconds", OrNull(amounts->time.sigma)},
          {"cost_joules", amounts->cost.mean},
          {"cost_sigma_joules", OrNull(amounts->cost.sigma)}};
}

}  // namespace

Json ToJson(const Lessons& lessons) {
  Json recurrences = Json::array();
  for (const RecurrenceAmounts& amounts : lessons.recurrences)
    recurrences.push_back(wire::ToJson(amounts));
  Json trials = Json::array();
  for (const Trial& trial : lessons.trials) trials.push_back(wire::ToJson(trial));
  Json measured = Json::array();
  for (const MeasuredArm& arm : lessons.measured) measured.push_back(wire::ToJson(arm));
  return {{"schema", "zeus.job/2"},
          {"job", wire::ToJson(lessons.job, wire::JobProgress{lessons.arms.stage,
                                                              lessons.arms.best_batch_size})},
          {"arms", wire::ToJson(lessons.arms)},
          {"best_batch_size", lessons.arms.best_batch_size},
          {"cheapest_batch_size", lessons.cheapest ? Json(*lessons.cheapest) : Json()},
          {"measured", std::move(measured)},
          {"power_limit_watts", lessons.power_limit ? Json(lessons.power_limit->value()) : Json()},
          {"at_best", ToJson(lessons.at_best)},
          {"savings", wire::ToJson(lessons.savings)},
          {"total", ToJson(lessons.total)},
          {"baseline", ToJson(lessons.baseline)},
          {"exploration", ToJson(lessons.exploration)},
          {"recurrences", std::move(recurrences)},
          {"trials", std::move(trials)}};
}

namespace {

constexpr const char* kUnknown = "-";

std::string OrUnknown(const std::optional<Joules>& energy) {
  return energy ? EnergyText(*energy) : kUnknown;
}

// The cost of the epochs, without the start of the program and the profiling of power limits.
std::string Belief(const ArmBelief& arm) {
  if (!arm.cost) return kUnknown;
  return WithSigma(*arm.cost, arm.cost_sigma.value_or(Joules()));
}

std::string UsualEnergy(const MeanAmount& amount) {
  return WithSigma(Joules(amount.mean), Joules(amount.sigma.value_or(0)));
}

std::string MeasuredCost(const MeasuredArm& arm) {
  if (arm.reached == 0) return kUnknown;
  return UsualEnergy(arm.cost);
}

const char* StateText(ArmState state) {
  switch (state) {
    case ArmState::kUntried:
      return "untried";
    case ArmState::kCandidate:
      return "";
    case ArmState::kDropped:
      return "dropped";
  }
  return "";
}

std::string Marks(const ArmBelief& arm, const Lessons& lessons) {
  std::string text = StateText(arm.state);
  const auto add = [&text](const char* mark) {
    text += (text.empty() ? "" : ", ") + std::string(mark);
  };
  if (arm.batch_size == lessons.arms.best_batch_size) add("chosen");
  if (arm.batch_size == lessons.cheapest) add("best");
  if (arm.batch_size == lessons.job.spec.default_batch_size) add("default");
  return text;
}

std::string Changed(const SavedAmount& saved) {
  return ChangeWithSigma(-saved.percent, saved.percent_sigma);
}

std::string UsualTime(const MeanAmount& amount) {
  return WithSigma(Seconds(amount.mean), Seconds(amount.sigma.value_or(0)));
}

// Names the recurrences that a mean is made from.
std::string LatestText(const Lessons& lessons) {
  const int count = lessons.at_best->count;
  const std::string_view did = lessons.at_best_explored ? "tried" : "chose";
  const std::string which =
      count == 1 ? "the only recurrence" : fmt::format("mean of the latest {} recurrences", count);
  return fmt::format("{} that {} batch size {}", which, did, lessons.arms.best_batch_size);
}

std::string BaselineText(const JobSavings& savings) {
  std::string text = fmt::format(
      "{} undisturbed runs of the default (batch size {}, power limit as "
      "found",
      savings.baseline.count, savings.default_batch_size);
  if (savings.baseline_job != savings.job_id) text += ", job " + savings.baseline_job;
  return text + ")";
}

}  // namespace

std::string ArmsTable(const Lessons& lessons) {
  std::vector<std::vector<std::string>> rows{{"batch size", "runs", "reached", "epochs",
                                              "epoch cost", "epochs to target cost", "a run took",
                                              ""}};
  for (std::size_t i = 0; i < lessons.arms.arms.size(); ++i) {
    const ArmBelief& arm = lessons.arms.arms[i];
    rows.push_back(
        {fmt::to_string(arm.batch_size), fmt::to_string(arm.runs), fmt::to_string(arm.converged),
         arm.epochs ? fmt::format("{:.1f}", *arm.epochs) : kUnknown, OrUnknown(arm.epoch_cost),
         Belief(arm), MeasuredCost(lessons.measured[i]), Marks(arm, lessons)});
  }
  return AlignedRows({Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                      Align::kRight, Align::kRight, Align::kLeft},
                     rows);
}

namespace {

std::string StatusText(const Trial& trial) {
  std::string text(Name(trial.status));
  if (trial.role == RunRole::kBaseline) text += ", baseline";
  if (trial.shared) text += ", shared GPU";
  if (trial.unmeasured) text += ", energy not known";
  return text;
}

}  // namespace

std::string TrialsTable(const Lessons& lessons) {
  std::vector<std::vector<std::string>> rows{{"trial", "recurrence", "batch size", "status",
                                              "epochs", "metric", "time", "energy", "cost", "limit",
                                              "started"}};
  for (const Trial& trial : lessons.trials) {
    rows.push_back(
        {fmt::to_string(trial.number),
         trial.attempt > 0 ? fmt::format("{}.{}", trial.recurrence, trial.attempt)
                           : fmt::to_string(trial.recurrence),
         fmt::to_string(trial.batch_size), StatusText(trial), fmt::to_string(trial.epochs),
         trial.metric ? fmt::format("{:.4g}", *trial.metric) : kUnknown, TimeText(trial.time),
         EnergyText(trial.energy), EnergyText(trial.cost),
         trial.power_limit ? fmt::format("{:g} W", trial.power_limit->value()) : kUnknown,
         ToText(trial.started_at)});
  }
  return AlignedRows(
      {Align::kRight, Align::kRight, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
       Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft},
      rows);
}

std::string SavingsText(const Lessons& lessons) {
  const JobSavings& savings = lessons.savings;
  std::string text;
  if (savings.saved) {
    constexpr double kJoulesPerKilowattHour = 3.6e6;
    const SavedAmount& energy = savings.saved->energy;
    text = fmt::format(
        "against {}:\n  energy {}, time {}, cost {}\n"
        "  in all {} saved over {} recurrences, {} runs; exploration, profiling and failed runs "
        "are charged\n",
        BaselineText(savings), Changed(energy), Changed(savings.saved->time),
        Changed(savings.saved->cost),
        WithSigma(1e3 * energy.total / kJoulesPerKilowattHour,
                  1e3 * energy.total_sigma / kJoulesPerKilowattHour, "Wh"),
        savings.zeus.count, savings.runs);
    // The cost of a job is in joules: beside it, this is money.
    if (savings.saved_carbon)
      for (const std::string& line : ToLines(*savings.saved_carbon, "money"))
        text += fmt::format("  saved {}\n", line);
  } else {
    text = fmt::format("saved: not known yet: {}\n", savings.unknown_because);
  }
  if (savings.shared > 0)
    text += fmt::format("  (without {} run{} that shared GPUs with other processes)\n",
                        savings.shared, savings.shared == 1 ? "" : "s");
  if (savings.unmeasured > 0)
    text += fmt::format("  (without {} run{} whose energy is not known well enough)\n",
                        savings.unmeasured, savings.unmeasured == 1 ? "" : "s");
  return text;
}

std::string GoalText(const JobSpec& spec) {
  if (HasEpochGoal(spec)) return fmt::format("{} epochs a run, without a target", spec.max_epochs);
  return fmt::format("target {:g}", spec.target_metric);
}

std::string EpochGoalText(const JobSpec& spec) {
  return fmt::format(
      "without a target, every run is {} epochs: batch sizes are compared by the speed and power "
      "of their epochs alone, so choose among those that train your model equally well",
      spec.max_epochs);
}

std::string SummaryText(const Lessons& lessons) {
  std::string text = fmt::format("chosen: batch size {}", lessons.arms.best_batch_size);
  if (lessons.power_limit)
    text += fmt::format(", power limit {:g} W", lessons.power_limit->value());
  if (!lessons.arms.gpu_model.empty())
    text += fmt::format(" on {}", Printable(lessons.arms.gpu_model));
  text += fmt::format(" (policy {}, {})\n", lessons.job.spec.policy, lessons.arms.stage);
  if (lessons.arms.next)
    text += fmt::format("next: {}\n{}\n", lessons.arms.next->why, lessons.arms.next->outlook);
  if (lessons.at_best)
    text += fmt::format(
        "a recurrence takes {} and {}, cost {}\n"
        "  ({}, failed tries included; eta {:g})\n",
        UsualEnergy(lessons.at_best->energy), UsualTime(lessons.at_best->time),
        UsualEnergy(lessons.at_best->cost), LatestText(lessons), lessons.job.spec.eta);
  text += SavingsText(lessons);
  if (HasEpochGoal(lessons.job.spec)) text += EpochGoalText(lessons.job.spec) + "\n";
  text += fmt::format("so far: recurrences {}, runs {}, {}; of that exploration: runs {}, {}",
                      lessons.job.recurrences, lessons.total.runs, EnergyText(lessons.total.energy),
                      lessons.exploration.runs, EnergyText(lessons.exploration.energy));
  if (lessons.baseline.runs > 0)
    text += fmt::format(", undisturbed default: runs {}, {}", lessons.baseline.runs,
                        EnergyText(lessons.baseline.energy));
  return text + "\n";
}

}  // namespace zeus::cli
