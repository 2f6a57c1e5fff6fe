#include "apps/zeus/job/job_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "apps/zeus/job/energy_text.h"
#include "zeus/base/text_table.h"

namespace zeus::cli {
namespace {

std::string LabelOf(const RecurrenceAmounts& recurrence) {
  return fmt::format("recurrence {}: batch size {}, {}{}{}", recurrence.recurrence,
                     recurrence.batch_size, EnergyText(recurrence.cost),
                     recurrence.tries > 1 ? fmt::format(", {} tries", recurrence.tries) : "",
                     recurrence.converged ? "" : ", target not reached");
}

// The batch sizes of the spec, by position.
double PositionOf(int batch_size, const JobSpec& spec) {
  const auto found = std::ranges::find(spec.batch_sizes, batch_size);
  return static_cast<double>(found - spec.batch_sizes.begin());
}

}  // namespace

report::Figure PlotOf(const Lessons& lessons) {
  const JobSpec& spec = lessons.job.spec;
  const std::string missed = "target not reached";
  using report::Mark;
  report::Panel costs{.title = "cost",
                      .x = {.title = "recurrence"},
                      .y = {.title = "cost of a recurrence (kJ)", .from_zero = true}};
  report::Panel sizes{
      .title = "batch size", .x = {.title = "recurrence"}, .y = {.title = "batch size"}};
  for (report::Panel* const panel : {&costs, &sizes})
    panel->series = {{.name = "recurrence", .role = "zeus", .mark = Mark::kPoints},
                     {.name = missed, .role = "", .mark = Mark::kPoints},
                     {.name = "undisturbed default", .role = "default", .mark = Mark::kPoints}};
  const auto add = [](report::Series& series, double x, double y, const std::string& label) {
    series.x.push_back(x);
    series.y.push_back(y);
    series.labels.push_back(label);
  };
  for (const RecurrenceAmounts& recurrence : lessons.recurrences) {
    const auto x = static_cast<double>(recurrence.recurrence);
    std::size_t series = recurrence.converged ? 0 : 1;
    if (recurrence.role == RunRole::kBaseline) series = 2;
    const std::string label = LabelOf(recurrence);
    add(costs.series[series], x, recurrence.cost.value() / 1e3, label);
    add(sizes.series[series], x, PositionOf(recurrence.batch_size, spec), label);
  }
  for (report::Panel* const panel : {&costs, &sizes})
    std::erase_if(panel->series, [](const report::Series& series) { return series.x.empty(); });
  for (const int batch_size : spec.batch_sizes)
    sizes.y.categories.push_back(fmt::to_string(batch_size));
  return {.id = "recurrences",
          .title = fmt::format("Cost of job {} by recurrence", spec.id),
          .caption = fmt::format("{} recurrences; the best batch size is {}.",
                                 lessons.recurrences.size(), lessons.arms.best_batch_size),
          .panels = {std::move(costs), std::move(sizes)}};
}

std::string ToTextPlot(const Lessons& lessons, std::size_t rows) {
  constexpr double kWidest = 40;
  const std::size_t count = std::min(rows, lessons.recurrences.size());
  const auto shown = std::span(lessons.recurrences).last(count);
  Joules most{};
  for (const RecurrenceAmounts& recurrence : shown) most = std::max(most, recurrence.cost);
  std::vector<std::vector<std::string>> lines;
  for (const RecurrenceAmounts& recurrence : shown) {
    const double share = most > Joules(0) ? recurrence.cost / most : 0;
    lines.push_back({fmt::to_string(recurrence.recurrence), fmt::to_string(recurrence.batch_size),
                     EnergyText(recurrence.cost),
                     std::string(static_cast<std::size_t>(std::lround(share * kWidest)), '#') +
                         (recurrence.role == RunRole::kBaseline ? " (undisturbed default)" : "") +
                         (recurrence.shared ? " (shared GPU)" : "") +
                         (recurrence.converged ? "" : " (target not reached)")});
  }
  if (lines.empty()) return "";
  lines.insert(lines.begin(), {"recurrence", "batch size", "cost", ""});
  return AlignedRows({Align::kRight, Align::kRight, Align::kRight, Align::kLeft}, lines);
}

}  // namespace zeus::cli
