#include "apps/zeus/plan/plan_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/plan/timeline.h"
#include "zeus/optimizer/pipeline/plan_search.h"

namespace zeus::cli {
namespace {

using pipeline::PipelinePlan;
using pipeline::PlannedInstruction;
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
      series.heat.push_back(PowerOf(planned).value());
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
  const PowerRange powers = RangeOf({&before, &plan}, answer.problem.blocking_power);
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

}  // namespace zeus::cli
