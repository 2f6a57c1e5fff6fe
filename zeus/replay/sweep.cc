#include "zeus/replay/sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/json.h"

namespace zeus::replay {
namespace {

Json BetaJson(std::optional<double> beta) { return beta ? Json(*beta) : Json(); }

}  // namespace

std::vector<SweepRow> RowsOf(const JobComparison& comparison) {
  const ReplayJob& job = *comparison.job;
  const Usage usual = static_cast<double>(comparison.recurrences) * job.DefaultUsage();
  std::vector<SweepRow> rows;
  for (const ContenderReplays& replays : comparison.contenders) {
    const std::vector<ReplaySummary> summaries = replays.Summaries();
    Usage total;
    for (const ReplaySummary& summary : summaries) total += summary.usage;
    const double share = 1.0 / static_cast<double>(summaries.size());
    rows.push_back({.gpu_model = job.gpu_model,
                    .workload = job.label,
                    .eta = job.eta,
                    .beta = replays.spec.beta,
                    .policy = replays.spec.name,
                    .recurrences = comparison.recurrences,
                    .last_five_energy = Of(summaries, &ReplaySummary::last_five_energy),
                    .last_five_time = Of(summaries, &ReplaySummary::last_five_time),
                    .last_five_cost = Of(summaries, &ReplaySummary::last_five_cost),
                    .regret_of_50 = Of(summaries, &ReplaySummary::regret_of_50),
                    .regret = Of(summaries, &ReplaySummary::regret),
                    .energy = share * (total.energy / usual.energy),
                    .time = share * (total.time / usual.time),
                    .cost = share * (total.cost / usual.cost),
                    .unfinished = Of(summaries, &ReplaySummary::unfinished).mean});
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

}  // namespace zeus::replay
