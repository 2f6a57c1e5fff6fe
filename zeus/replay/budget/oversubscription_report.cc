#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/replay/budget/oversubscription.h"

namespace zeus::replay {
namespace {

constexpr std::array kCapped{BudgetRule::kUniform, BudgetRule::kWaterFilling};

std::string_view RoleOf(BudgetRule rule) {
  if (rule == BudgetRule::kWaterFilling) return "zeus";
  return rule == BudgetRule::kUniform ? "default" : "grid";
}

double Percent(double slowdown) { return 100 * (slowdown - 1); }

std::string SlowdownText(double slowdown) { return fmt::format("{:.2f} %", Percent(slowdown)); }

report::Cell NumberCell(double value, std::string text) {
  return {.text = std::move(text), .value = value};
}

std::vector<const OversubscriptionRun*> RunsOf(const Oversubscription& study, BudgetRule rule) {
  std::vector<const OversubscriptionRun*> runs;
  for (const OversubscriptionRun& run : study.runs) {
    if (run.rule == rule) runs.push_back(&run);
  }
  return runs;
}

report::Table MainTable(const Oversubscription& study) {
  report::Table table{
      .id = "budgets",
      .title = "More GPUs under the same budget",
      .caption =
          "Slowdowns are those of whole jobs against running without a cap; throughput is "
          "that of the cluster with the additional GPUs against the one without.",
      .columns = {"more GPUs", "rule", "mean slowdown", "99 % of jobs below", "worst job",
                  "throughput", "energy per work", "highest draw", "over budget"}};
  for (const OversubscriptionRun& run : study.runs) {
    const OversubscriptionRun& free = study.runs.front();
    const double draw = run.highest_draw / run.budget;
    table.rows.push_back(
        {NumberCell(run.more, PercentText(run.more, 0)),
         {.text = std::string(ToText(run.rule))},
         NumberCell(run.mean_slowdown, SlowdownText(run.mean_slowdown)),
         NumberCell(run.p99_slowdown, SlowdownText(run.p99_slowdown)),
         NumberCell(run.worst_slowdown, SlowdownText(run.worst_slowdown)),
         NumberCell(run.throughput, fmt::format("{:+.1f} %", 100 * run.throughput)),
         NumberCell(run.energy / free.energy, ChangeText(run.energy.value(), free.energy.value())),
         NumberCell(draw, PercentText(draw, 0)),
         NumberCell(run.over, PercentText(run.over))});
  }
  return table;
}

report::Figure SlowdownFigure(const Oversubscription& study) {
  report::Panel panel{.title = "Mean slowdown of jobs",
                      .x = {.title = "more GPUs under the same budget (%)", .from_zero = true},
                      .y = {.title = "slowdown (%)", .from_zero = true}};
  report::Panel gain{.title = "Throughput of the cluster",
                     .x = {.title = "more GPUs under the same budget (%)", .from_zero = true},
                     .y = {.title = "more throughput (%)", .from_zero = true}};
  for (const BudgetRule rule : kCapped) {
    report::Series mean{.name = std::string(ToText(rule)), .role = std::string(RoleOf(rule))};
    for (const OversubscriptionRun* run : RunsOf(study, rule)) {
      mean.x.push_back(100 * run->more);
      mean.y.push_back(Percent(run->mean_slowdown));
    }
    report::Series throughput{.name = mean.name, .role = mean.role, .x = mean.x};
    for (const OversubscriptionRun* run : RunsOf(study, rule))
      throughput.y.push_back(100 * run->throughput);
    panel.series.push_back(std::move(mean));
    gain.series.push_back(std::move(throughput));
  }
  return {.id = "slowdown",
          .title = "What more GPUs cost and bring",
          .caption = "Each additional GPU is as busy as the others, and all share one budget.",
          .panels = {std::move(panel), std::move(gain)}};
}

// Returns the place of the run that is nearest to what water-filling allows.
std::size_t ChosenIndex(const Oversubscription& study) {
  const double more =
      study.MoreAtAccepted(BudgetRule::kWaterFilling).value_or(study.options.more.back());
  const auto nearest = std::ranges::min_element(
      study.options.more, {}, [&](double candidate) { return std::abs(candidate - more); });
  return static_cast<std::size_t>(nearest - study.options.more.begin());
}

report::Figure PowerFigure(const Oversubscription& study, std::size_t chosen) {
  report::Panel panel{.title = "Power over time",
                      .x = {.title = "hours", .from_zero = true},
                      .y = {.title = "power (kW)", .from_zero = true}};
  double longest = 0;
  double budget = 0;
  for (const BudgetRule rule :
       {BudgetRule::kUncapped, BudgetRule::kUniform, BudgetRule::kWaterFilling}) {
    const OversubscriptionRun& run = *RunsOf(study, rule)[chosen];
    report::Series series{.name = std::string(ToText(rule)),
                          .role = std::string(RoleOf(rule)),
                          .mark = report::Mark::kSteps};
    double energy = 0;
    for (const Watts draw : run.draw) energy += draw.value();
    const double hours = energy > 0 ? run.energy.value() / energy / 3600 : 0;
    for (std::size_t i = 0; i < run.draw.size(); ++i) {
      series.x.push_back(hours * static_cast<double>(i));
      series.y.push_back(run.draw[i].value() / 1e3);
    }
    longest = std::max(longest, hours * static_cast<double>(run.draw.size()));
    budget = run.budget.value() / 1e3;
    panel.series.push_back(std::move(series));
  }
  panel.series.push_back({.name = "budget",
                          .role = "front",
                          .mark = report::Mark::kRule,
                          .x = {0, longest},
                          .y = {budget, budget}});
  return {
      .id = "power",
      .title = fmt::format("Power with {} more GPUs", PercentText(study.options.more[chosen], 0)),
      .caption =
          "Means over 1/400 of the time; draws are those of the recorded curves, shorter "
          "peaks are not in them.",
      .panels = {std::move(panel)}};
}

report::Figure PayersFigure(const Oversubscription& study, std::size_t chosen) {
  report::Panel panel{.title = "Who pays",
                      .x = {.title = ""},
                      .y = {.title = "mean slowdown (%)", .from_zero = true}};
  std::vector<std::size_t> shown;
  const OversubscriptionRun& ours = *RunsOf(study, BudgetRule::kWaterFilling)[chosen];
  for (std::size_t c = 0; c < study.curves.size(); ++c) {
    if (std::isfinite(ours.slowdown_of_curve[c])) shown.push_back(c);
  }
  // The 16 that pay most by the rule that treats all alike.
  const OversubscriptionRun& uniform = *RunsOf(study, BudgetRule::kUniform)[chosen];
  std::ranges::stable_sort(shown, std::greater(),
                           [&](std::size_t c) { return uniform.slowdown_of_curve[c]; });
  if (shown.size() > 16) shown.resize(16);
  for (const std::size_t c : shown) panel.x.categories.push_back(study.curves[c].name);
  for (const BudgetRule rule : kCapped) {
    report::Series series{.name = std::string(ToText(rule)),
                          .role = std::string(RoleOf(rule)),
                          .mark = report::Mark::kBars};
    for (std::size_t i = 0; i < shown.size(); ++i) {
      series.x.push_back(static_cast<double>(i));
      series.y.push_back(Percent(RunsOf(study, rule)[chosen]->slowdown_of_curve[shown[i]]));
    }
    panel.series.push_back(std::move(series));
  }
  return {.id = "payers",
          .title = fmt::format("Who pays, with {} more GPUs",
                               PercentText(study.options.more[chosen], 0)),
          .caption = "The jobs that a uniform cap slows most.",
          .panels = {std::move(panel)}};
}

std::string Finding(const Oversubscription& study, BudgetRule rule) {
  const auto more = study.MoreAtAccepted(rule);
  const std::string accepted = SlowdownText(study.options.accepted);
  if (!more)
    return fmt::format("{}: more than {} more GPUs fit at a mean slowdown of {}.", ToText(rule),
                       PercentText(study.options.more.back(), 0), accepted);
  return fmt::format("{}: {} more GPUs fit at a mean slowdown of {}.", ToText(rule),
                     PercentText(*more, 0), accepted);
}

std::string OverFinding(const Oversubscription& study) {
  for (const OversubscriptionRun* run : RunsOf(study, BudgetRule::kUncapped)) {
    if (run->over > 0)
      return fmt::format(
          "Without caps the budget is exceeded from {} more GPUs on: in {} of the "
          "time there, by up to {}.",
          PercentText(run->more, 0), PercentText(run->over),
          PercentText(run->highest_draw / run->budget - 1, 0));
  }
  return "Without caps the budget is never exceeded: means over periods do not reach it.";
}

}  // namespace

report::Report ToReport(const Oversubscription& study) {
  const std::size_t chosen = ChosenIndex(study);
  report::Report report{
      .title = "How many more GPUs fit under one budget",
      .subtitle = fmt::format("{}: {} jobs on {} GPUs over {}, which are busy for {} of the time",
                              study.source, study.jobs, study.gpus, TimeText(study.span),
                              PercentText(study.busy, 0))};
  for (const BudgetRule rule : kCapped) report.findings.push_back(Finding(study, rule));
  report.findings.push_back(OverFinding(study));
  report.remarks = study.remarks;
  report.remarks.push_back(
      study.options.resource == water_filling::Resource::kLimits
          ? "The sum of power limits never exceeds the budget; idle GPUs keep their lowest limit."
          : "The expected draw and two standard deviations never exceed the budget; idle GPUs "
            "count "
            "with their idle power.");
  report.remarks.push_back(
      "Without more GPUs the budget holds the highest limit of every GPU. More GPUs under one "
      "budget are studied as the same GPUs under a smaller one, so each is as busy as before.");
  report.sections.push_back({.title = "Slowdown and gain",
                             .tables = {MainTable(study)},
                             .figures = {SlowdownFigure(study)}});
  report.sections.push_back({.title = "Where the watts go",
                             .figures = {PowerFigure(study, chosen), PayersFigure(study, chosen)}});
  return report;
}

Json ToJson(const Oversubscription& study) {
  Json runs = Json::array();
  for (const OversubscriptionRun& run : study.runs) {
    runs.push_back({{"rule", ToText(run.rule)},
                    {"more_gpus", run.more},
                    {"budget_watts", run.budget.value()},
                    {"mean_slowdown", run.mean_slowdown},
                    {"p99_slowdown", run.p99_slowdown},
                    {"worst_slowdown", run.worst_slowdown},
                    {"throughput_gain", run.throughput},
                    {"energy_joules", run.energy.value()},
                    {"highest_draw_watts", run.highest_draw.value()},
                    {"over_budget", run.over},
                    {"short_of_watts", run.short_of_watts},
                    {"swing_watts", run.swing.value()}});
  }
  Json fits = Json::object();
  for (const BudgetRule rule : kCapped) {
    const auto more = study.MoreAtAccepted(rule);
    fits[std::string(ToText(rule))] = more ? Json(*more) : Json();
  }
  return {{"schema", "zeus.oversubscription/1"},
          {"source", study.source},
          {"jobs", study.jobs},
          {"gpus", study.gpus},
          {"span_seconds", study.span.count()},
          {"busy", study.busy},
          {"accepted_slowdown", study.options.accepted},
          {"more_gpus_at_accepted_slowdown", std::move(fits)},
          {"runs", std::move(runs)}};
}

}  // namespace zeus::replay
