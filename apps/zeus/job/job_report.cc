#include "apps/zeus/job/job_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/epoch_goal.h"
#include "zeus/report/report.h"

namespace zeus::cli {
namespace {

using report::Cell;

std::string RecurrenceLabel(const RecurrenceAmounts& recurrence) {
  return fmt::format("recurrence {}: batch size {}, {}{}{}", recurrence.recurrence,
                     recurrence.batch_size, EnergyText(recurrence.cost),
                     recurrence.tries > 1 ? fmt::format(", {} tries", recurrence.tries) : "",
                     recurrence.converged ? "" : ", target not reached");
}

// The position of a batch size among those of the spec.
double BatchSizeIndex(int batch_size, const JobSpec& spec) {
  const auto found = std::ranges::find(spec.batch_sizes, batch_size);
  return static_cast<double>(found - spec.batch_sizes.begin());
}

// Cost and batch size of every recurrence.
report::Figure RecurrencesFigure(const Lessons& lessons) {
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
    const std::string label = RecurrenceLabel(recurrence);
    add(costs.series[series], x, recurrence.cost.value() / 1e3, label);
    add(sizes.series[series], x, BatchSizeIndex(recurrence.batch_size, spec), label);
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

template <class Number>
Cell CountCell(Number number) {
  return {fmt::to_string(number), static_cast<double>(number)};
}

// An amount with its uncertainty where that is known; empty where there is no amount.
Cell EnergyCell(const std::optional<Joules>& energy, const std::optional<Joules>& sigma = {}) {
  if (!energy) return {};
  return {sigma ? WithSigma(*energy, *sigma) : EnergyText(*energy), energy->value()};
}

report::Table BatchSizesTable(const Lessons& lessons) {
  report::Table table{.id = "batch-sizes",
                      .title = "Beliefs and measured costs",
                      .caption =
                          "Epochs to target: what the policy believes that the epochs of a "
                          "run cost. A run took: what whole runs that reached the target "
                          "did cost. ± is one standard deviation.",
                      .columns = {"batch size", "runs", "reached", "epochs", "epoch cost",
                                  "epochs to target cost", "a run took", ""}};
  for (std::size_t i = 0; i < lessons.arms.arms.size(); ++i) {
    const ArmBelief& arm = lessons.arms.arms[i];
    const MeasuredArm& measured = lessons.measured[i];
    std::optional<Joules> mean;
    std::optional<Joules> sigma;
    if (measured.reached > 0) mean = Joules(measured.cost.mean);
    if (measured.cost.sigma) sigma = Joules(*measured.cost.sigma);
    std::vector<std::string> marks;
    if (arm.batch_size == lessons.arms.best_batch_size) marks.emplace_back("chosen");
    if (arm.batch_size == lessons.cheapest) marks.emplace_back("best");
    if (arm.batch_size == lessons.job.spec.default_batch_size) marks.emplace_back("default");
    table.rows.push_back(
        {CountCell(arm.batch_size),
         CountCell(arm.runs),
         CountCell(arm.converged),
         arm.epochs ? Cell{fmt::format("{:.1f}", *arm.epochs), *arm.epochs} : Cell{},
         EnergyCell(arm.epoch_cost),
         EnergyCell(arm.cost, arm.cost_sigma),
         EnergyCell(mean, sigma),
         {.text = fmt::format("{}", fmt::join(marks, ", "))}});
  }
  return table;
}

report::Table RunsTable(const Lessons& lessons) {
  report::Table table{.id = "runs",
                      .title = "All runs",
                      .columns = {"trial", "recurrence", "batch size", "status", "epochs", "metric",
                                  "time", "energy", "cost", "limit", "how it ended"}};
  for (const Trial& trial : lessons.trials) {
    table.rows.push_back(
        {CountCell(trial.number),
         CountCell(trial.recurrence),
         CountCell(trial.batch_size),
         {.text = std::string(Name(trial.status))},
         CountCell(trial.epochs),
         trial.metric ? Cell{fmt::format("{:.4g}", *trial.metric), *trial.metric} : Cell{},
         {TimeText(trial.time), trial.time.count()},
         EnergyCell(trial.energy),
         EnergyCell(trial.cost),
         trial.power_limit
             ? Cell{fmt::format("{:g} W", trial.power_limit->value()), trial.power_limit->value()}
             : Cell{},
         {.text = trial.reason}});
  }
  return table;
}

report::Table JobTable(const Lessons& lessons) {
  const JobSpec& spec = lessons.job.spec;
  report::Table table{.id = "job", .title = "Job", .columns = {"what", "value"}};
  const auto add = [&table](const char* name, const std::string& value) {
    if (!value.empty()) table.rows.push_back({{.text = name}, {.text = value}});
  };
  add("policy", spec.policy + ", " + lessons.arms.stage);
  add("goal", HasEpochGoal(spec) ? GoalText(spec)
                                 : fmt::format("{}, {} is better", GoalText(spec),
                                               spec.higher_is_better ? "higher" : "lower"));
  add("batch sizes", fmt::format("{}", fmt::join(spec.batch_sizes, ", ")));
  add("default", fmt::to_string(spec.default_batch_size));
  add("eta", fmt::format("{:g}", spec.eta));
  add("GPU model", lessons.arms.gpu_model);
  add("seed", fmt::to_string(lessons.job.seed));
  add("registered", ToText(lessons.job.created_at));
  return table;
}

// The lines of the summary for terminals, each a finding; indented lines continue the one above.
std::vector<std::string> Findings(const Lessons& lessons) {
  const std::string summary = SummaryText(lessons);
  std::vector<std::string> findings;
  for (std::string_view rest = summary; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (Trim(line).empty()) continue;
    if (line.starts_with(' ') && !findings.empty())
      findings.back() += " " + std::string(Trim(line));
    else
      findings.emplace_back(line);
  }
  return findings;
}

}  // namespace

report::Report ToReport(const Lessons& lessons) {
  return {.title = "Recurring job " + lessons.job.spec.id,
          .findings = Findings(lessons),
          .sections = {{.title = "Recurrences", .figures = {RecurrencesFigure(lessons)}},
                       {.title = "Batch sizes", .tables = {BatchSizesTable(lessons)}},
                       {.title = "Runs", .tables = {RunsTable(lessons)}},
                       {.title = "Circumstances", .tables = {JobTable(lessons)}}}};
}

Result<std::string> ToHtml(const Lessons& lessons) { return report::ToHtml(ToReport(lessons)); }

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
                         (recurrence.unmeasured ? " (energy not known)" : "") +
                         (recurrence.converged ? "" : " (target not reached)")});
  }
  if (lines.empty()) return "";
  lines.insert(lines.begin(), {"recurrence", "batch size", "cost", ""});
  return AlignedRows({Align::kRight, Align::kRight, Align::kRight, Align::kLeft}, lines);
}

}  // namespace zeus::cli
