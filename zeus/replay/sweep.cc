#include "zeus/replay/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"

namespace zeus::replay {
namespace {

Json BetaJson(std::optional<double> beta) { return beta ? Json(*beta) : Json(); }

}  // namespace

std::vector<SweepRow> MakeSweepRows(const JobComparison& comparison) {
  const ReplayJob& job = *comparison.job;
  const Usage usual = static_cast<double>(comparison.recurrences) * job.DefaultUsage();
  std::vector<SweepRow> rows;
  for (const ContenderReplays& replays : comparison.contenders) {
    const std::vector<ReplaySummary> summaries = replays.Summaries();
    Usage total;
    for (const ReplaySummary& summary : summaries) total += summary.usage;
    const double share = 1.0 / static_cast<double>(summaries.size());
    rows.push_back(
        {.gpu_model = job.gpu_model,
         .workload = job.label,
         .eta = job.eta,
         .beta = replays.spec.beta,
         .policy = replays.spec.name,
         .recurrences = comparison.recurrences,
         .last_five_energy = SummarizeFigure(summaries, &ReplaySummary::last_five_energy),
         .last_five_time = SummarizeFigure(summaries, &ReplaySummary::last_five_time),
         .last_five_cost = SummarizeFigure(summaries, &ReplaySummary::last_five_cost),
         .regret_of_50 = SummarizeFigure(summaries, &ReplaySummary::regret_of_50),
         .regret = SummarizeFigure(summaries, &ReplaySummary::regret),
         .energy = share * (total.energy / usual.energy),
         .time = share * (total.time / usual.time),
         .cost = share * (total.cost / usual.cost),
         .unfinished = SummarizeFigure(summaries, &ReplaySummary::unfinished).mean});
  }
  return rows;
}

std::vector<SweepMean> GeometricMeans(const std::vector<SweepRow>& rows) {
  std::vector<SweepMean> means;
  for (const SweepRow& row : rows) {
    auto mean = std::ranges::find_if(means, [&](const SweepMean& one) {
      return one.eta == row.eta && one.beta == row.beta && one.policy == row.policy;
    });
    if (mean == means.end())
      mean = means.insert(means.end(), {.eta = row.eta, .beta = row.beta, .policy = row.policy});
    ++mean->settings;
    mean->energy += std::log(row.energy);
    mean->time += std::log(row.time);
    mean->cost += std::log(row.cost);
  }
  for (SweepMean& mean : means) {
    for (double* const sum : {&mean.energy, &mean.time, &mean.cost})
      *sum = std::exp(*sum / mean.settings);
  }
  return means;
}

Json SweepJson(const std::vector<SweepRow>& rows) {
  Json listed = Json::array();
  for (const SweepRow& row : rows)
    listed.push_back({{"gpu", row.gpu_model},
                      {"workload", row.workload},
                      {"eta", row.eta},
                      {"beta", BetaJson(row.beta)},
                      {"policy", row.policy},
                      {"recurrences", row.recurrences},
                      {"eta5_vs_default", FiniteOrNull(row.last_five_energy.mean)},
                      {"tta5_vs_default", FiniteOrNull(row.last_five_time.mean)},
                      {"cost5_vs_oracle", FiniteOrNull(row.last_five_cost.mean)},
                      {"regret50", FiniteOrNull(row.regret_of_50.mean)},
                      {"regret", FiniteOrNull(row.regret.mean)},
                      {"regret_sem", FiniteOrNull(row.regret.StandardError())},
                      {"energy_vs_default", row.energy},
                      {"time_vs_default", row.time},
                      {"cost_vs_default", row.cost},
                      {"unfinished_recurrences", row.unfinished}});
  Json means = Json::array();
  for (const SweepMean& mean : GeometricMeans(rows))
    means.push_back({{"eta", mean.eta},
                     {"beta", BetaJson(mean.beta)},
                     {"policy", mean.policy},
                     {"settings", mean.settings},
                     {"energy_vs_default", mean.energy},
                     {"time_vs_default", mean.time},
                     {"cost_vs_default", mean.cost}});
  return {{"rows", std::move(listed)}, {"geometric_means", std::move(means)}};
}

namespace {

using report::Cell;

std::string BetaText(std::optional<double> beta) {
  return beta ? fmt::format("{:g}", *beta) : "none";
}

Cell Plain(double value, int decimals) {
  if (!std::isfinite(value)) return {.text = "-"};
  return {.text = fmt::format("{:.{}f}", value, decimals), .value = value};
}

Cell WithError(const SampleSummary& summary, int decimals) {
  if (!std::isfinite(summary.mean)) return {.text = "-"};
  return {.text = FixedWithSigma(summary.mean, summary.StandardError(), decimals),
          .value = summary.mean};
}

report::Table RowTable(const std::vector<SweepRow>& rows) {
  report::Table table{
      .id = "replay-sweep",
      .title = "Settings",
      .caption =
          "Energy and time of the last five recurrences, and the cost of all of them, as "
          "shares of the default's; cumulative regret in units of the oracle's cost; "
          "unfinished: recurrences of which no try reached the target.",
      .columns = {"gpu", "workload", "eta", "beta", "policy", "energy of last 5", "time of last 5",
                  "cost", "regret", "unfinished"}};
  for (const SweepRow& row : rows)
    table.rows.push_back(
        {{.text = row.gpu_model},
         {.text = row.workload},
         {.text = fmt::format("{:g}", row.eta), .value = row.eta},
         {.text = BetaText(row.beta), .value = row.beta},
         {.text = row.policy},
         WithError(row.last_five_energy, 3),
         WithError(row.last_five_time, 3),
         Plain(row.cost, 3),
         WithError(row.regret, 2),
         {.text = fmt::format("{:.4g}", row.unfinished), .value = row.unfinished}});
  return table;
}

report::Table MeanTable(const std::vector<SweepMean>& means) {
  report::Table table{.id = "replay-sweep-means",
                      .title = "Geometric means over GPU models and workloads",
                      .caption =
                          "Of all recurrences, exploration included, as shares of what the "
                          "default takes.",
                      .columns = {"eta", "beta", "policy", "settings", "energy", "time", "cost"}};
  for (const SweepMean& mean : means)
    table.rows.push_back({{.text = fmt::format("{:g}", mean.eta), .value = mean.eta},
                          {.text = BetaText(mean.beta), .value = mean.beta},
                          {.text = mean.policy},
                          {.text = fmt::to_string(mean.settings), .value = mean.settings},
                          Plain(mean.energy, 3),
                          Plain(mean.time, 3),
                          Plain(mean.cost, 3)});
  return table;
}

// One series per policy (and per value of the other knob, if there are several).
report::Panel MeanPanel(const std::vector<SweepMean>& means, bool over_beta,
                        double SweepMean::*figure, std::string title) {
  report::Panel panel{.title = title,
                      .x = {.title = over_beta ? "beta" : "eta"},
                      .y = {.title = title + " (default = 1)"}};
  for (const SweepMean& mean : means) {
    if (over_beta && !mean.beta) continue;
    const bool eta_varies =
        std::ranges::any_of(means, [&](const SweepMean& one) { return one.eta != mean.eta; });
    const std::string name =
        over_beta && eta_varies ? fmt::format("{} (eta {:g})", mean.policy, mean.eta) : mean.policy;
    auto series = std::ranges::find(panel.series, name, &report::Series::name);
    if (series == panel.series.end())
      series = panel.series.insert(panel.series.end(), {.name = name, .role = mean.policy});
    series->x.push_back(over_beta ? *mean.beta : mean.eta);
    series->y.push_back(mean.*figure);
  }
  return panel;
}

report::Figure MeanFigure(const std::vector<SweepMean>& means) {
  const bool over_beta = std::ranges::any_of(means, [&](const SweepMean& mean) {
    return mean.beta && means.front().beta && *mean.beta != *means.front().beta;
  });
  return {.id = "replay-sweep-means",
          .title = over_beta ? "Sensitivity to beta" : "Energy and time as eta chooses",
          .caption =
              "Geometric means over GPU models and workloads of what all recurrences take, "
              "exploration included, as shares of what the default takes.",
          .panels = {MeanPanel(means, over_beta, &SweepMean::energy, "energy"),
                     MeanPanel(means, over_beta, &SweepMean::time, "time"),
                     MeanPanel(means, over_beta, &SweepMean::cost, "cost")}};
}

}  // namespace

std::vector<std::string> UnfinishedRemarks(const std::vector<SweepRow>& rows) {
  std::vector<std::string> remarks;
  for (const SweepRow& row : rows)
    if (row.unfinished > 0)
      remarks.push_back(fmt::format(
          "{}/{}, eta {:g}, beta {}: with {}, {:.4g} of {} recurrences do not reach the target.",
          row.gpu_model, row.workload, row.eta, BetaText(row.beta), row.policy, row.unfinished,
          row.recurrences));
  return remarks;
}

report::Report SweepReport(const std::vector<SweepRow>& rows, int seeds) {
  const std::vector<SweepMean> means = GeometricMeans(rows);
  return {.title = "Sweep of replays",
          .subtitle = fmt::format("{} settings, {} seeds each", rows.size(), seeds),
          .sections = {{.title = "Sweep",
                        .tables = {RowTable(rows), MeanTable(means)},
                        .figures = {MeanFigure(means)}}}};
}

}  // namespace zeus::replay
