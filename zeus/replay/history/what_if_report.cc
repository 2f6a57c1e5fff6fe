#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/replay/history/what_if.h"

namespace zeus::replay {
namespace {

// The unit of a column.
struct ColumnUnit {
  double size;  // In joules or seconds.
  const char* name;
};

// The largest unit of which the largest number of the column is at least one, so that a job of a
// few kilojoules is not 0.003 MJ, and one of weeks not 1000000 s.
template <std::size_t kCount>
ColumnUnit UnitFor(double largest, const std::array<ColumnUnit, kCount>& units) {
  for (const ColumnUnit& unit : units)
    if (largest >= unit.size) return unit;
  return units.back();
}

ColumnUnit EnergyUnitFor(double largest) {
  constexpr std::array kUnits = {ColumnUnit{1e9, "GJ"}, ColumnUnit{1e6, "MJ"},
                                 ColumnUnit{1e3, "kJ"}, ColumnUnit{1, "J"}};
  return UnitFor(largest, kUnits);
}

ColumnUnit TimeUnitFor(double largest) {
  constexpr std::array kUnits = {ColumnUnit{86400, "d"}, ColumnUnit{3600, "h"},
                                 ColumnUnit{60, "min"}, ColumnUnit{1, "s"}};
  return UnitFor(largest, kUnits);
}

// The units of an answer; energy and cost share one, so that they can be compared.
struct AnswerUnits {
  ColumnUnit energy;
  ColumnUnit time;
};

AnswerUnits UnitsOf(const WhatIfAnswer& answer) {
  double energy = std::max(answer.recorded.energy.value(), answer.recorded.cost.value());
  double time = answer.recorded.time.count();
  for (const WhatIfOutcome& outcome : answer.outcomes) {
    energy = std::max({energy, outcome.energy.mean, outcome.cost.mean});
    time = std::max(time, outcome.time.mean);
  }
  return {.energy = EnergyUnitFor(energy), .time = TimeUnitFor(time)};
}

Json ToJson(const Estimate& estimate) {
  return {{"mean", estimate.mean},
          {"deviation", estimate.deviation},
          {"low", estimate.low},
          {"high", estimate.high}};
}

// "12.3 ± 0.4 (11.9 to 13.0)"
report::Cell CellOf(const Estimate& estimate, double unit) {
  std::string text = FixedWithSigma(estimate.mean / unit, estimate.deviation / unit, 3);
  if (estimate.low != estimate.high)
    text += fmt::format(" ({:.3f} to {:.3f})", estimate.low / unit, estimate.high / unit);
  return {.text = std::move(text), .value = estimate.mean / unit};
}

report::Cell Number(double value, int decimals) {
  return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

bool Reaches(const WhatIfOutcome& outcome) { return outcome.reached.mean > 0.0; }

// What failing takes is no saving, however little it is.
void AddFailures(const WhatIfAnswer& answer, report::Report& report) {
  std::vector<std::string> never;
  for (const WhatIfOutcome& outcome : answer.outcomes)
    if (!Reaches(outcome)) never.push_back(outcome.contender);
  if (never.empty()) return;
  report.findings.push_back(fmt::format(
      "The target is not reached by {}: what {} is what failing takes, and cannot be "
      "compared.",
      never.size() == answer.outcomes.size() ? "any policy"
                                             : fmt::format("{}", fmt::join(never, ", ")),
      never.size() == 1 ? "its row says" : "their rows say"));
}

report::Table OutcomeTable(const WhatIfAnswer& answer) {
  const auto [energy, time] = UnitsOf(answer);
  report::Table table{
      .id = "table-what-if",
      .title = "What it would take",
      .caption =
          "Mean over the seeds ± their standard deviation; in brackets, what comes out under "
          "other assumptions about what was not measured.",
      .columns = {"policy", "recurrences", fmt::format("energy ({})", energy.name),
                  fmt::format("time ({})", time.name), fmt::format("cost ({})", energy.name),
                  "target reached"}};
  table.rows.push_back({{.text = "as recorded on " + answer.recorded_gpu_model},
                        Number(static_cast<double>(answer.recorded_recurrences), 0),
                        Number(answer.recorded.energy.value() / energy.size, 3),
                        Number(answer.recorded.time.count() / time.size, 3),
                        Number(answer.recorded.cost.value() / energy.size, 3),
                        {}});
  for (const WhatIfOutcome& outcome : answer.outcomes)
    table.rows.push_back({{.text = outcome.contender + (Reaches(outcome) ? "" : " (fails)")},
                          Number(static_cast<double>(answer.recurrences), 0),
                          CellOf(outcome.energy, energy.size),
                          CellOf(outcome.time, time.size),
                          CellOf(outcome.cost, energy.size),
                          {.text = fmt::format("{:.0f} %", 100 * outcome.reached.mean),
                           .value = outcome.reached.mean}});
  return table;
}

report::Figure OutcomeFigure(const WhatIfAnswer& answer) {
  const AnswerUnits units = UnitsOf(answer);
  report::Panel energy{
      .title = "energy",
      .y = {.title = fmt::format("energy ({})", units.energy.name), .from_zero = true}};
  report::Panel time{.title = "time",
                     .y = {.title = fmt::format("time ({})", units.time.name), .from_zero = true}};
  const auto add = [](report::Panel& panel, const WhatIfOutcome& outcome, const Estimate& estimate,
                      double unit) {
    const double place = static_cast<double>(panel.x.categories.size());
    panel.x.categories.push_back(outcome.contender);
    panel.series.push_back({.name = outcome.contender,
                            .role = outcome.contender,
                            .mark = report::Mark::kBars,
                            .x = {place},
                            .y = {estimate.mean / unit},
                            .low = {estimate.low / unit},
                            .high = {estimate.high / unit}});
  };
  for (const WhatIfOutcome& outcome : answer.outcomes) {
    if (!Reaches(outcome)) continue;
    add(energy, outcome, outcome.energy, units.energy.size);
    add(time, outcome, outcome.time, units.time.size);
  }
  return {.id = "figure-what-if",
          .title = "Energy and time of all recurrences",
          .caption =
              "What each policy would take; the spread is what comes out under other "
              "assumptions about what was not measured.",
          .panels = {std::move(energy), std::move(time)}};
}

}  // namespace

Json ToJson(const WhatIfAnswer& answer) {
  Json policies = Json::object();
  for (const WhatIfOutcome& outcome : answer.outcomes)
    policies[outcome.contender] = {{"energy_joules", ToJson(outcome.energy)},
                                   {"time_seconds", ToJson(outcome.time)},
                                   {"cost_joules", ToJson(outcome.cost)},
                                   {"target_reached", ToJson(outcome.reached)}};
  return {{"schema", "zeus.replay_history/1"},
          {"job", answer.job_id},
          {"recorded",
           {{"gpu_model", answer.recorded_gpu_model},
            {"recurrences", answer.recorded_recurrences},
            {"energy_joules", answer.recorded.energy.value()},
            {"time_seconds", answer.recorded.time.count()},
            {"cost_joules", answer.recorded.cost.value()}}},
          {"gpu_model", answer.gpu_model},
          {"eta", answer.eta},
          {"recurrences", answer.recurrences},
          {"best", answer.best_batch_size ? Json{{"batch_size", *answer.best_batch_size},
                                                 {"power_limit_watts", answer.best_limit->value()}}
                                          : Json(nullptr)},
          {"policies", std::move(policies)},
          {"measured", answer.measured},
          {"estimated", answer.estimated},
          {"unknown", answer.unknown}};
}

report::Report ToReport(const WhatIfAnswer& answer) {
  report::Report report{.title = "What if: " + answer.job_id,
                        .subtitle = fmt::format("eta = {:g}, on {}, {} recurrences", answer.eta,
                                                answer.gpu_model, answer.recurrences)};
  if (answer.best_batch_size)
    report.findings.push_back(fmt::format("Least cost: batch size {} at {:g} W.",
                                          *answer.best_batch_size, answer.best_limit->value()));
  AddFailures(answer, report);
  for (const std::string& text : answer.measured) report.remarks.push_back("Measured. " + text);
  for (const std::string& text : answer.estimated) report.remarks.push_back("Estimated. " + text);
  for (const std::string& text : answer.unknown) report.remarks.push_back("Not known. " + text);
  report.sections.push_back({.title = "Answer", .tables = {OutcomeTable(answer)}});
  if (std::ranges::any_of(answer.outcomes, Reaches))
    report.sections.back().figures.push_back(OutcomeFigure(answer));
  return report;
}

}  // namespace zeus::replay
