#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "zeus/base/quantity_text.h"
#include "zeus/replay/sweep.h"

namespace zeus::replay {
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
