#include <fmt/format.h>

#include <vector>

#include "apps/zeus/job/energy_text.h"
#include "apps/zeus/job/lessons.h"
#include "zeus/base/text_table.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::cli {
namespace {

constexpr const char* kUnknown = "-";

std::string OrUnknown(const std::optional<Joules>& energy) {
  return energy ? EnergyText(*energy) : kUnknown;
}

std::string Belief(const ArmBelief& arm) {
  if (!arm.cost) return kUnknown;
  return arm.cost_sigma ? fmt::format("{} ± {}", EnergyText(*arm.cost), EnergyText(*arm.cost_sigma))
                        : EnergyText(*arm.cost);
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
  if (arm.batch_size == lessons.arms.best_batch_size) add("best");
  if (arm.batch_size == lessons.job.spec.default_batch_size) add("default");
  return text;
}

std::string Changed(const MeanAmount& percent_below) {
  // No minus before a zero.
  const std::string change = fmt::format("{:+.1f}", 0.0 - percent_below.mean);
  if (!percent_below.sigma) return change + " %";
  return fmt::format("{} ± {:.1f} %", change, *percent_below.sigma);
}

std::string UsualEnergy(const MeanAmount& amount) {
  if (!amount.sigma) return EnergyText(Joules(amount.mean));
  return fmt::format("{} ± {}", EnergyText(Joules(amount.mean)), EnergyText(Joules(*amount.sigma)));
}

std::string UsualTime(const MeanAmount& amount) {
  if (!amount.sigma) return TimeText(Seconds(amount.mean));
  return fmt::format("{} ± {}", TimeText(Seconds(amount.mean)), TimeText(Seconds(*amount.sigma)));
}

std::string AgainstText(const Savings& saved, const std::string& what) {
  return fmt::format("against {}: energy {}, time {}, cost {}\n", what, Changed(saved.energy),
                     Changed(saved.time), Changed(saved.cost));
}

}  // namespace

std::string ArmsTable(const Lessons& lessons) {
  std::vector<std::vector<std::string>> rows{
      {"batch size", "runs", "reached", "epochs", "epoch cost", "cost of a run", ""}};
  for (const ArmBelief& arm : lessons.arms.arms) {
    rows.push_back({fmt::to_string(arm.batch_size), fmt::to_string(arm.runs),
                    fmt::to_string(arm.converged),
                    arm.epochs ? fmt::format("{:.1f}", *arm.epochs) : kUnknown,
                    OrUnknown(arm.epoch_cost), Belief(arm), Marks(arm, lessons)});
  }
  return AlignedRows({Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                      Align::kRight, Align::kLeft},
                     rows);
}

std::string TrialsTable(const Lessons& lessons) {
  std::vector<std::vector<std::string>> rows{{"trial", "recurrence", "batch size", "status",
                                              "epochs", "metric", "time", "energy", "cost", "limit",
                                              "started"}};
  for (const Trial& trial : lessons.trials) {
    rows.push_back(
        {fmt::to_string(trial.number),
         trial.attempt > 0 ? fmt::format("{}.{}", trial.recurrence, trial.attempt)
                           : fmt::to_string(trial.recurrence),
         fmt::to_string(trial.batch_size), std::string(Name(trial.status)),
         fmt::to_string(trial.epochs),
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

std::string SummaryText(const Lessons& lessons, const Lessons* baseline) {
  std::string text = fmt::format("chosen: batch size {}", lessons.arms.best_batch_size);
  if (lessons.power_limit)
    text += fmt::format(", power limit {:g} W", lessons.power_limit->value());
  if (!lessons.arms.gpu_model.empty()) text += fmt::format(" on {}", lessons.arms.gpu_model);
  text += fmt::format(" (policy {}, {})\n", lessons.job.spec.policy, lessons.arms.stage);
  if (lessons.at_best)
    text += fmt::format(
        "a recurrence takes {} and {}, cost {}\n"
        "  (mean of {}, failed tries included; eta {:g})\n",
        UsualEnergy(lessons.at_best->energy), UsualTime(lessons.at_best->time),
        UsualEnergy(lessons.at_best->cost), lessons.at_best->recurrences, lessons.job.spec.eta);
  if (baseline != nullptr) {
    std::string other = fmt::format("job {} with batch size {}", baseline->job.spec.id,
                                    baseline->job.spec.default_batch_size);
    if (baseline->arms.gpu_model != lessons.arms.gpu_model)
      other += " on " + baseline->arms.gpu_model;
    if (const auto saved = SavedAgainst(lessons.at_best, baseline->at_default))
      text += AgainstText(*saved, other);
  } else if (lessons.arms.best_batch_size != lessons.job.spec.default_batch_size) {
    if (const auto saved = SavedAgainst(lessons.at_best, lessons.at_default))
      text += AgainstText(
          *saved, fmt::format("the default batch size {}", lessons.job.spec.default_batch_size));
  }
  text += fmt::format("so far: recurrences {}, runs {}, {}; of that exploration: runs {}, {}\n",
                      lessons.job.recurrences, lessons.total.runs, EnergyText(lessons.total.energy),
                      lessons.exploration.runs, EnergyText(lessons.exploration.energy));
  return text;
}

}  // namespace zeus::cli
