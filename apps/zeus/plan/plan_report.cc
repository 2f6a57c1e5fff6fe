#include "apps/zeus/plan/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/pipeline/point_choice.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kInitials = 4;

std::string_view Initials(std::string_view instruction) {
  if (instruction == pipeline::kForward) return "F";
  if (instruction == pipeline::kBackward) return "B";
  if (instruction == pipeline::kForwardBackward) return "FB";
  if (instruction == pipeline::kRecomputation) return "R";
  return instruction.substr(0, kInitials);
}

}  // namespace

std::string ShortName(const pipeline::PlannedInstruction& planned) {
  std::string name = fmt::format("{}{}", Initials(planned.instruction), planned.microbatch);
  if (planned.chunk > 0) name += fmt::format(".{}", planned.chunk);
  return name;
}

std::string LongName(const pipeline::PlannedInstruction& planned) {
  std::string name = fmt::format("{} of microbatch {}", planned.instruction, planned.microbatch);
  if (planned.chunk > 0) name += fmt::format(", chunk {}", planned.chunk);
  if (planned.clock > Hertz()) name += fmt::format(" at {:.0f} MHz", planned.clock.ToMega());
  return name + fmt::format(", {:.4g} s", planned.time.count());
}

Watts MeanPower(const pipeline::PlannedInstruction& planned) {
  return planned.energy / planned.time;
}

double PowerRange::Position(Watts power) const {
  if (!(high > low)) return 0.5;
  return std::clamp((power - low) / (high - low), 0.0, 1.0);
}

PowerRange FindPowerRange(const std::vector<const pipeline::PipelinePlan*>& plans, Watts blocking) {
  PowerRange range{.low = blocking, .high = blocking};
  for (const pipeline::PipelinePlan* plan : plans)
    for (const auto& stage : plan->stages)
      for (const pipeline::PlannedInstruction& planned : stage)
        range.high = std::max(range.high, MeanPower(planned));
  return range;
}

namespace {

using pipeline::PlannedInstruction;

constexpr std::array<std::string_view, 4> kShades = {"░", "▒", "▓", "█"};
constexpr std::size_t kMostRows = 48;  // If there are more stages, only some are shown.
constexpr std::size_t kLabel = 10;     // Width of "stage 123 ".
constexpr double kBusy = 0.4;          // A column with less work than this share counts as waiting.

std::size_t Columns(const PictureFrame& frame) {
  return static_cast<std::size_t>(std::max(frame.width, 40)) - kLabel - 1;
}

std::string_view ChooseShade(double share) {
  const auto level = static_cast<std::size_t>(share * kShades.size());
  return kShades[std::min(level, kShades.size() - 1)];
}

// The work during the time of one column.
struct Column {
  double busy = 0;   // Share of the column's time.
  double power = 0;  // Share of the power range, summed over the busy time.
};

class StageRow {
 public:
  StageRow(const std::vector<PlannedInstruction>& stage, const PictureFrame& frame)
      : frame_(frame), cells_(Columns(frame), " ") {
    std::vector<Column> columns(cells_.size());
    for (const PlannedInstruction& planned : stage) AddWork(planned, columns);
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].busy > kBusy) cells_[i] = ChooseShade(columns[i].power / columns[i].busy);
    for (const PlannedInstruction& planned : stage) Write(planned);
  }

  std::string Text() const {
    std::string text;
    for (const std::string& cell : cells_) text += cell;
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  double ToColumns(Seconds time) const {
    return time / frame_.until * static_cast<double>(cells_.size());
  }

  void AddWork(const PlannedInstruction& planned, std::vector<Column>& columns) const {
    const double from = ToColumns(planned.start);
    const double to = ToColumns(planned.start + planned.time);
    const double share = frame_.powers.Position(MeanPower(planned));
    for (auto i = static_cast<std::size_t>(from); i < columns.size(); ++i) {
      const auto left = static_cast<double>(i);
      if (left >= to) break;
      const double part = std::min(left + 1, to) - std::max(left, from);
      columns[i].busy += part;
      columns[i].power += part * share;
    }
  }

  // Writes the name over the shade if enough of the shade stays visible.
  void Write(const PlannedInstruction& planned) {
    const auto first = static_cast<std::size_t>(std::lround(ToColumns(planned.start)));
    const auto last =
        static_cast<std::size_t>(std::lround(ToColumns(planned.start + planned.time)));
    const std::string name = ShortName(planned);
    if (last > cells_.size() || first + name.size() >= last) return;
    for (std::size_t i = 0; i < name.size(); ++i) cells_[first + i] = name.substr(i, 1);
  }

  const PictureFrame& frame_;
  std::vector<std::string> cells_;
};

}  // namespace

std::string PipelinePicture(const pipeline::PipelinePlan& plan, const PictureFrame& frame) {
  std::string text;
  const std::size_t every = (plan.stages.size() + kMostRows - 1) / kMostRows;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    if (stage % every != 0 && stage + 1 != plan.stages.size()) continue;
    text += fmt::format("stage {:<3} {}\n", stage, StageRow(plan.stages[stage], frame).Text());
  }
  return text;
}

std::string PictureLegend(const PictureFrame& frame) {
  const std::string middle = fmt::format("{:.4g} s", frame.until.count() / 2);
  const std::string end = fmt::format("{:.4g} s", frame.until.count());
  std::string axis(Columns(frame), ' ');
  axis.replace(0, 3, "0 s");
  axis.replace(axis.size() / 2 - middle.size() / 2, middle.size(), middle);
  axis.replace(axis.size() - end.size(), end.size(), end);
  std::string text = std::string(kLabel, ' ') + axis + "\n";
  text += fmt::format("{}{:.0f} W {} {:.0f} W, blank: waiting\n", std::string(kLabel, ' '),
                      frame.powers.low.value(), fmt::join(kShades, ""), frame.powers.high.value());
  return text;
}

namespace {

using pipeline::PipelinePlan;
using report::Figure;
using report::Mark;
using report::Panel;
using report::Series;

// Largest number in an iteration that is drawn as a whole.
constexpr std::size_t kMostBoxes = 6000;
constexpr double kBoxesInWindow = 100;  // Number per stage in a part of a larger one.

// A part of the time of an iteration.
struct Window {
  Seconds from{0};
  Seconds to{0};
  std::string name{};  // " (its beginning)"
};

std::size_t CountBoxes(const PipelinePlan& plan) {
  std::size_t boxes = 0;
  for (const auto& stage : plan.stages) boxes += stage.size();
  return boxes;
}

// Returns the parts that are drawn if an iteration has too many boxes to tell apart: at the
// beginning and at the end, where a share of each stage's computations runs.
std::vector<Window> ChooseWindows(const PipelinePlan& plan) {
  const auto boxes = static_cast<double>(CountBoxes(plan));
  const Seconds part =
      plan.time * std::min(1.0, kBoxesInWindow * static_cast<double>(plan.stages.size()) / boxes);
  return {{.from = Seconds(0), .to = part, .name = ": the beginning"},
          {.from = plan.time - part, .to = plan.time, .name = ": the end"}};
}

Series MakeSpans(const PipelinePlan& plan, const Window& window) {
  Series series{.name = "Computations", .mark = Mark::kSpans};
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const PlannedInstruction& planned : plan.stages[stage]) {
      const Seconds end = planned.start + planned.time;
      if (end <= window.from || planned.start >= window.to) continue;
      series.x.push_back(std::max(planned.start, window.from).count());
      series.until.push_back(std::min(end, window.to).count());
      series.y.push_back(static_cast<double>(plan.stages.size() - 1 - stage));
      series.heat.push_back(MeanPower(planned).value());
      series.span_names.push_back(ShortName(planned));
      series.labels.push_back(fmt::format("stage {}: {}", stage, LongName(planned)));
    }
  }
  return series;
}

// Draws a vertical line across all stages.
Series UprightRule(std::string name, std::string role, Seconds at, std::size_t stages) {
  return {.name = std::move(name),
          .role = std::move(role),
          .mark = Mark::kRule,
          .x = {at.count(), at.count()},
          .y = {-0.5, static_cast<double>(stages) - 0.5}};
}

Panel PipelinePanel(std::string title, const PipelinePlan& plan, const PowerRange& powers,
                    const Window& window) {
  Panel panel{.title = std::move(title),
              .x = {.title = "time (s)", .from_zero = window.from == Seconds(0)},
              .y = {},
              .series = {MakeSpans(plan, window)},
              .colour_scale = report::ColourScale{
                  .title = "power (W)", .low = powers.low.value(), .high = powers.high.value()}};
  for (std::size_t i = plan.stages.size(); i-- > 0;)
    panel.y.categories.push_back(fmt::format("stage {}", i));
  return panel;
}

Series OnePoint(std::string name, std::string role, Seconds time, Joules energy) {
  return {.name = std::move(name),
          .role = std::move(role),
          .mark = Mark::kPoints,
          .x = {time.count()},
          .y = {energy.value()}};
}

}  // namespace

Figure PipelineFigure(const PlanAnswer& answer) {
  const PipelinePlan& plan = *answer.plan;
  const PipelinePlan before =
      MakePlan(answer.problem, HighestClockChoice(answer.problem), Seconds(0));
  const PowerRange powers = FindPowerRange({&before, &plan}, answer.problem.blocking_power);
  Figure figure{.id = "pipeline",
                .title = "One iteration, drawn to scale",
                .caption = fmt::format(
                    "What is not on the critical path runs at a lower clock and takes less "
                    "power. Blank: the stage waits, at {:.3g} W.",
                    answer.problem.blocking_power.value())};
  const std::pair<std::string, const PipelinePlan*> both[] = {{"All at the highest clock", &before},
                                                              {"The " + answer.plan_name, &plan}};
  if (CountBoxes(plan) > kMostBoxes) {
    figure.caption +=
        fmt::format(" The beginning and the end of {} computations.", CountBoxes(plan));
    for (std::size_t i = 0; i < 2; ++i)
      for (const auto& [title, shown] : both) {
        const Window window = ChooseWindows(*shown)[i];
        figure.panels.push_back(PipelinePanel(title + window.name, *shown, powers, window));
      }
    return figure;
  }
  const Seconds until = std::max({before.time, plan.time, plan.waits_until});
  const bool waits = plan.waits_until > plan.time;
  for (const auto& [title, shown] : both) {
    Panel panel = PipelinePanel(title, *shown, powers, {.from = Seconds(0), .to = until});
    // The line also makes both panels equally long.
    panel.series.push_back(
        UprightRule("End at the highest clock", "default", before.time, plan.stages.size()));
    panel.series.push_back(
        UprightRule(waits ? "End of the straggler" : "End of the " + answer.plan_name, "zeus",
                    std::max(plan.time, plan.waits_until), plan.stages.size()));
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

Figure FrontierFigure(const PlanAnswer& answer) {
  Series frontier{.name = "Frontier", .role = "front", .mark = Mark::kLine};
  for (const pipeline::FrontierPoint& point : answer.frontier) {
    frontier.x.push_back(point.time.count());
    frontier.y.push_back(point.energy.value());
  }
  // The frontier begins with its slowest point, but axes grow to the right.
  std::ranges::reverse(frontier.x);
  std::ranges::reverse(frontier.y);
  Series others{.name = "Plans", .role = "knowledge_gradient", .mark = Mark::kPoints};
  for (const SlackRow& row : answer.slacks) {
    if (!row.plan) continue;
    others.x.push_back(row.plan->time.count());
    others.y.push_back(row.plan->energy.value());
    others.labels.push_back(fmt::format("{:.0f} % slower", 100 * row.slowdown));
  }
  Panel panel{.title = "",
              .x = {.title = "iteration time (s)"},
              .y = {.title = "energy of an iteration (J)"},
              .series = {frontier, others}};
  panel.series.push_back(OnePoint("All at the highest clock", "default", answer.baseline.time,
                                  answer.baseline.energy));
  if (answer.plan) {
    const PipelinePlan& plan = *answer.plan;
    // The energy of waiting for a straggler is not shown on this axis.
    const Joules waiting = answer.problem.blocking_power * (plan.waits_until - plan.time) *
                           static_cast<double>(answer.problem.stages);
    const auto [low, high] = std::ranges::minmax(frontier.y);
    panel.series.push_back({.name = plan.waits_until > plan.time ? "Pace" : "Deadline",
                            .role = "paper",
                            .mark = Mark::kRule,
                            .x = {plan.deadline.count(), plan.deadline.count()},
                            .y = {low, std::max(high, answer.baseline.energy.value())}});
    panel.series.push_back(
        OnePoint("The " + answer.plan_name, "zeus", plan.time, plan.energy - waiting));
  }
  return {.id = "frontier",
          .title = "The least energy for every iteration time",
          .caption =
              "No plan lies below the frontier, of which every point is exact. It rises where "
              "waiting for the end costs more than slower computations save.",
          .panels = {panel}};
}

namespace {

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
    std::vector<Cell> cells = {ShareCell(row.slowdown, PercentText(row.slowdown, 0)),
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
  const PictureFrame frame{
      .width = width,
      .until = std::max({before.time, plan.time, plan.waits_until}),
      .powers = FindPowerRange({&before, &plan}, answer.problem.blocking_power)};
  return fmt::format("All at the highest clock\n{}\nThe {}\n{}{}", PipelinePicture(before, frame),
                     answer.plan_name, PipelinePicture(plan, frame), PictureLegend(frame));
}

}  // namespace zeus::cli
