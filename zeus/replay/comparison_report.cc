#include "zeus/replay/comparison_report.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/quantity_text.h"
#include "zeus/base/statistics.h"

namespace zeus::replay {
namespace {

using report::Cell;

Cell NumberCell(const SampleSummary& summary, int decimals) {
  if (!std::isfinite(summary.mean)) return {.text = "-"};
  return {.text = FixedWithSigma(summary.mean, summary.StandardError(), decimals),
          .value = summary.mean};
}

Cell UnfinishedCell(double recurrences) {
  return {.text = fmt::format("{:.4g}", recurrences), .value = recurrences};
}

report::Table MakeTable(const JobComparison& comparison) {
  report::Table table{
      .id = "replay-job",
      .title = "Policies",
      .caption =
          "Energy and time of the last five recurrences as shares of those of the default "
          "batch size at full power; costs and cumulative regret in units of the oracle's "
          "cost. Means over the seeds and their standard errors. Unfinished: recurrences "
          "of which no try reached the target.",
      .columns = {"policy", "energy of last 5", "time of last 5", "cost of last 5",
                  "regret of first 50", "regret", "unfinished"}};
  for (const ContenderReplays& replays : comparison.contenders) {
    const std::vector<ReplaySummary> summaries = replays.Summaries();
    table.rows.push_back({{.text = replays.spec.name},
                          NumberCell(Of(summaries, &ReplaySummary::last_five_energy), 3),
                          NumberCell(Of(summaries, &ReplaySummary::last_five_time), 3),
                          NumberCell(Of(summaries, &ReplaySummary::last_five_cost), 3),
                          NumberCell(Of(summaries, &ReplaySummary::regret_of_50), 2),
                          NumberCell(Of(summaries, &ReplaySummary::regret), 2),
                          UnfinishedCell(Of(summaries, &ReplaySummary::unfinished).mean)});
  }
  return table;
}

// One standard deviation between seeds to each side of the mean.
report::Series RegretSeries(const JobComparison& comparison, const ContenderReplays& replays) {
  report::Series series{.name = replays.spec.name, .role = replays.spec.name};
  for (std::size_t i = 0; i < comparison.marks.size(); ++i) {
    std::vector<double> values;
    for (const SeedReplay& seed : replays.seeds) values.push_back(seed.regret[i]);
    const SampleSummary summary = Summarize(values);
    series.x.push_back(static_cast<double>(comparison.marks[i]));
    series.y.push_back(summary.mean);
    series.low.push_back(summary.mean - summary.StandardDeviation());
    series.high.push_back(summary.mean + summary.StandardDeviation());
  }
  return series;
}

report::Figure RegretFigure(const JobComparison& comparison) {
  report::Panel panel{.title = comparison.job->name(),
                      .x = {.title = "recurrence"},
                      .y = {.title = "cumulative regret (cost of the oracle)", .from_zero = true}};
  for (const ContenderReplays& replays : comparison.contenders)
    panel.series.push_back(RegretSeries(comparison, replays));
  return {.id = "replay-job-regret",
          .title = "Cumulative regret",
          .caption =
              "What is paid above the oracle's choice until a recurrence: the flatter, the "
              "less there is left to learn.",
          .panels = {std::move(panel)}};
}

report::Panel LatestPanel(const JobComparison& comparison, double ReplaySummary::*figure,
                          std::string title) {
  report::Panel panel{.title = title, .y = {.title = title + " (default = 1)", .from_zero = true}};
  for (std::size_t i = 0; i < comparison.contenders.size(); ++i) {
    const ContenderReplays& replays = comparison.contenders[i];
    const SampleSummary summary = Of(replays.Summaries(), figure);
    const double spread = summary.StandardDeviation();
    panel.x.categories.push_back(replays.spec.name);
    panel.series.push_back({.name = replays.spec.name,
                            .role = replays.spec.name,
                            .mark = report::Mark::kBars,
                            .x = {static_cast<double>(i)},
                            .y = {summary.mean},
                            .low = {summary.mean - spread},
                            .high = {summary.mean + spread}});
  }
  return panel;
}

report::Figure LatestFigure(const JobComparison& comparison) {
  return {.id = "replay-job-latest",
          .title = "The last five recurrences",
          .caption =
              "Energy and time to the target once a policy has learned, beside the default "
              "batch size at full power.",
          .panels = {LatestPanel(comparison, &ReplaySummary::last_five_energy, "energy"),
                     LatestPanel(comparison, &ReplaySummary::last_five_time, "time")}};
}

// ", which reaches the target in 3 of 4 recorded runs", unless it does in all.
std::string ArrivalOfDefault(const ReplayJob& job) {
  const ReplayArm& usual = job.arm(job.default_batch_size);
  const std::size_t arriving = usual.RunsThatArrive(job.max_epochs);
  if (arriving == usual.epochs_to_target.size()) return "";
  return fmt::format(", which reaches the target in {} of {} recorded runs", arriving,
                     usual.epochs_to_target.size());
}

std::vector<std::string> Findings(const JobComparison& comparison) {
  const ReplayJob& job = *comparison.job;
  std::vector<std::string> findings;
  if (job.HasOracle()) {
    const Usage best = job.OracleUsage();
    const Usage usual = job.DefaultUsage();
    findings.push_back(fmt::format(
        "The least cost is that of batch size {} at {:g} W: {:.1f} % less energy and {:.1f} % {} "
        "time than batch size {} at {:g} W{}.",
        job.oracle().batch_size, job.oracle().best_limit.value(),
        100 * (1 - best.energy / usual.energy), 100 * std::abs(1 - best.time / usual.time),
        best.time > usual.time ? "more" : "less", job.default_batch_size,
        job.arm(job.default_batch_size).limits.back().limit.value(), ArrivalOfDefault(job)));
  }
  for (const ContenderReplays& replays : comparison.contenders) {
    const double unfinished = Of(replays.Summaries(), &ReplaySummary::unfinished).mean;
    if (unfinished > 0)
      findings.push_back(fmt::format("With {}, {:.4g} of {} recurrences do not reach the target.",
                                     replays.spec.name, unfinished, comparison.recurrences));
  }
  return findings;
}

}  // namespace

report::Report MakeReport(const JobComparison& comparison) {
  const ReplayJob& job = *comparison.job;
  const std::size_t seeds =
      comparison.contenders.empty() ? 0 : comparison.contenders.front().seeds.size();
  report::Report made{.title = fmt::format("Replay of {} on {}", job.title, job.gpu_model),
                      .subtitle = fmt::format("eta {:g}, {} recurrences, {} seeds", job.eta,
                                              comparison.recurrences, seeds),
                      .findings = Findings(comparison),
                      .remarks = job.remarks};
  report::Section section{.title = "Comparison", .tables = {MakeTable(comparison)}};
  if (job.HasOracle())
    section.figures.push_back(RegretFigure(comparison));
  else
    made.remarks.push_back(
        "No batch size reaches the target in all of its runs: there is no oracle, and regret is "
        "undefined.");
  section.figures.push_back(LatestFigure(comparison));
  made.sections.push_back(std::move(section));
  return made;
}

}  // namespace zeus::replay
