#include "apps/zeus/plan/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "apps/zeus/plan/pipeline_picture.h"
#include "apps/zeus/plan/plan_figures.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/plan_search.h"

namespace zeus::cli {
namespace {

using pipeline::PipelinePlan;
using report::Cell;
using report::Table;

std::string SecondsText(Seconds time) { return fmt::format("{:.5g} s", time.count()); }

std::string JoulesText(Joules energy) {
  return fmt::format("{:.{}f} J", energy.value(), std::abs(energy.value()) < 1e5 ? 1 : 0);
}

// Rounds up, because the gap is an upper bound.
std::string GapText(double gap) {
  const double tenths = std::max(0.0, std::ceil(gap * 1000 - 1e-6));
  return fmt::format("{:.1f} %", tenths / 10);
}

Cell TimeCell(Seconds time) { return {fmt::format("{:.5g}", time.count()), time.count()}; }
Cell EnergyCell(Joules energy) {
  return {fmt::format("{:.{}f}", energy.value(), std::abs(energy.value()) < 1e5 ? 1 : 0),
          energy.value()};
}
Cell ShareCell(double share, std::string text) { return {std::move(text), share}; }

Table FrontierTable(const PlanAnswer& answer) {
  const bool hull = answer.cost == pipeline::CostKind::kHull;
  Table table{.id = "slowdowns",
              .title = "What an iteration takes that may be slower than all at the highest clock",
              .columns = {"slower by", "time (s)", "energy (J)", "saving"}};
  if (hull) table.columns.emplace_back("above the least possible");
  for (const SlackRow& row : answer.slacks) {
    std::vector<Cell> cells = {ShareCell(row.slowdown, fmt::format("{:.0f} %", 100 * row.slowdown)),
                               TimeCell(row.plan ? row.plan->time : row.deadline),
                               EnergyCell(row.plan ? row.plan->energy : row.bound),
                               ShareCell(row.saving, PercentText(row.saving))};
    if (row.plan) cells.push_back(ShareCell(row.plan->gap(), GapText(row.plan->gap())));
    table.rows.push_back(std::move(cells));
  }
  table.caption = hull ? "Saving against all at the highest clock. The distance from the least "
                         "possible is rounded up."
                       : "By the exponential model, which no clock follows exactly.";
  return table;
}

std::string ChangesText(const PlanAnswer& answer) {
  const int changes = answer.plan->clock_changes;
  if (changes == 0) return "No clock changes during an iteration.";
  const Seconds latency = answer.rules.latency;
  return fmt::format("Clocks change {} times an iteration, in all stages together; {}.", changes,
                     latency > Seconds(0)
                         ? fmt::format("each change takes {:.3g} ms", latency.count() * 1e3)
                         : "a change is taken to cost nothing, --latency says otherwise");
}

void AddPlanFindings(const PlanAnswer& answer, std::vector<std::string>& findings) {
  const PipelinePlan& plan = *answer.plan;
  const double slower = plan.time / answer.baseline.time - 1;
  const bool waits = plan.waits_until > plan.time;
  findings.push_back(fmt::format(
      "The {} takes {} and {}{}: {} {} energy{}, and it is {} {}.", answer.plan_name,
      SecondsText(plan.time), JoulesText(plan.energy),
      waits
          ? fmt::format(", with waiting until {} for the straggler", SecondsText(plan.waits_until))
          : "",
      PercentText(std::abs(answer.saving)), answer.saving < 0 ? "more" : "less",
      waits ? " than all at the highest clock, who wait as well" : "",
      PercentText(std::abs(slower)), slower < -5e-4 ? "faster" : "slower"));
  findings.push_back(fmt::format(
      "No plan within {} takes less than {}: this one is at most {} above the least possible.",
      SecondsText(plan.deadline), JoulesText(plan.bound), GapText(plan.gap())));
  findings.push_back(ChangesText(answer));
  if (answer.replicas) {
    findings.push_back(fmt::format(
        "{} pipelines that wait for a straggler at {}: {} less energy in all, {} if they were "
        "planned as if there were none.",
        answer.data_parallel, SecondsText(answer.replicas->pace),
        PercentText(answer.replicas->saving()), PercentText(answer.replicas->intrinsic_saving())));
  } else if (answer.data_parallel > 1) {
    findings.push_back(fmt::format("All {} replicas together: {} instead of {} an iteration.",
                                   answer.data_parallel,
                                   JoulesText(plan.energy * answer.data_parallel),
                                   JoulesText(answer.baseline.energy * answer.data_parallel)));
  }
}

bool HasChoice(const pipeline::Problem& problem) {
  return std::ranges::any_of(
      problem.kinds, [](const pipeline::ComputationKind& kind) { return kind.points.size() > 1; });
}

std::vector<std::string> Remarks(const PlanAnswer& answer) {
  std::vector<std::string> remarks;
  if (answer.frontier.empty())
    remarks.push_back(fmt::format("Solved {} in {:.3g} s; --whole-frontier solves all of it.",
                                  answer.method, answer.solve_time.count()));
  else
    remarks.push_back(fmt::format("Solved {} ({} points) in {:.3g} s.", answer.method,
                                  answer.frontier.size(), answer.solve_time.count()));
  if (!HasChoice(answer.problem))
    remarks.emplace_back(
        "Every instruction was measured at one clock only: there is nothing to choose.");
  return remarks;
}

}  // namespace

report::Report MakePlanReport(const PlanAnswer& answer) {
  const pipeline::Problem& problem = answer.problem;
  report::Report report{
      .title = fmt::format("{}: {} stages, {} microbatches", Printable(problem.name),
                           problem.stages, problem.microbatches),
      .subtitle = fmt::format("{} computations; a stage that waits takes {:.5g} W",
                              problem.computations.size(), problem.blocking_power.value())};
  report.findings.push_back(fmt::format(
      "All at the highest clock an iteration takes {} and {}; the fastest possible takes {}.",
      SecondsText(answer.baseline.time), JoulesText(answer.baseline.energy),
      SecondsText(answer.fastest)));
  if (answer.plan) AddPlanFindings(answer, report.findings);
  report.remarks = Remarks(answer);
  report::Section section{.title = "Frontier"};
  if (!answer.slacks.empty()) section.tables.push_back(FrontierTable(answer));
  if (!answer.frontier.empty()) section.figures.push_back(FrontierFigure(answer));
  if (answer.plan)
    report.sections.push_back({.title = "Pipeline", .figures = {PipelineFigure(answer)}});
  if (!section.tables.empty() || !section.figures.empty())
    report.sections.push_back(std::move(section));
  return report;
}

std::string PlanPicture(const PlanAnswer& answer, int width) {
  if (!answer.plan) return "";
  const PipelinePlan before =
      MakePlan(answer.problem, HighestClockChoice(answer.problem), Seconds(0));
  const PipelinePlan& plan = *answer.plan;
  const PictureFrame frame{.width = width,
                           .until = std::max({before.time, plan.time, plan.waits_until}),
                           .powers = RangeOf({&before, &plan}, answer.problem.blocking_power)};
  return fmt::format("All at the highest clock\n{}\nThe {}\n{}{}", PipelinePicture(before, frame),
                     answer.plan_name, PipelinePicture(plan, frame), PictureLegend(frame));
}

}  // namespace zeus::cli
