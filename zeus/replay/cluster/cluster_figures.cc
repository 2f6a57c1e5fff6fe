#include "zeus/replay/cluster/cluster_figures.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zeus::replay {
namespace {

constexpr std::array kFigures = {
    ClusterFigure{"energy_vs_default",
                  [](const ContenderTotals& own, const ContenderTotals& usual) {
                    return own.totals.usage.energy / usual.totals.usage.energy;
                  }},
    ClusterFigure{"time_vs_default",
                  [](const ContenderTotals& own, const ContenderTotals& usual) {
                    return own.totals.usage.time / usual.totals.usage.time;
                  }},
    ClusterFigure{"cost_vs_default",
                  [](const ContenderTotals& own, const ContenderTotals& usual) {
                    return own.totals.usage.cost / usual.totals.usage.cost;
                  }},
    ClusterFigure{"cost_vs_oracle",
                  [](const ContenderTotals& own, const ContenderTotals&) {
                    return own.has_oracle ? own.totals.usage.cost / own.oracle_cost : NAN;
                  }},
    ClusterFigure{"regret",
                  [](const ContenderTotals& own, const ContenderTotals&) {
                    return own.has_oracle ? own.regret : NAN;
                  }},
};

ContenderTotals TotalsOf(const ReplayJob& job, const ClusterTotals& totals) {
  const Joules oracle = job.OracleCost();
  return {.totals = totals,
          .oracle_cost = totals.ratios * oracle,
          .regret = totals.usage.cost / oracle - totals.ratios,
          .has_oracle = job.HasOracle() || totals.jobs == 0};
}

// Sums up the totals of one workload, or of all of them.
ContenderTotals Collect(const ClusterComparison& comparison,
                        const std::vector<WorkloadTotals>& replay, std::size_t contender,
                        std::optional<std::size_t> workload) {
  ContenderTotals sum;
  for (std::size_t i = 0; i < replay.size(); ++i) {
    if (workload && i != *workload) continue;
    const ContenderTotals part = TotalsOf(comparison.jobs[i], replay[i].contenders[contender]);
    sum.totals += part.totals;
    sum.oracle_cost += part.oracle_cost;
    sum.regret += part.regret;
    sum.has_oracle &= part.has_oracle;
  }
  return sum;
}

}  // namespace

std::span<const ClusterFigure> ClusterFigures() { return kFigures; }

ClusterFigureSource::ClusterFigureSource(const ClusterComparison& comparison, std::size_t contender,
                                         std::optional<std::size_t> workload) {
  const auto usual = static_cast<std::size_t>(std::ranges::find(comparison.contenders, "default") -
                                              comparison.contenders.begin());
  for (const std::vector<WorkloadTotals>& replay : comparison.replays) {
    ContenderTotals own = Collect(comparison, replay, contender, workload);
    if (own.totals.jobs == 0) continue;
    own_.push_back(own);
    usual_.push_back(Collect(comparison, replay, usual, workload));
  }
}

std::optional<ClusterSaving> ComputeSaving(const ClusterComparison& comparison,
                                           std::size_t contender,
                                           std::optional<std::size_t> workload) {
  EnergyScatter scatter;
  Joules own{};
  Joules usual{};
  const ClusterFigureSource source(comparison, contender, workload);
  for (const ContenderTotals& totals : source.replays()) own += totals.totals.usage.energy;
  for (const ContenderTotals& totals : source.usual()) usual += totals.totals.usage.energy;
  for (const std::vector<WorkloadTotals>& replay : comparison.replays)
    for (std::size_t i = 0; i < replay.size(); ++i)
      if (!workload || i == *workload) scatter += replay[i].scatter[contender];
  const auto groups = static_cast<double>(scatter.groups);
  const auto over_replays = source.Of("energy_vs_default");
  const bool several = over_replays && over_replays->count > 1;
  if (!(usual > Joules(0)) || (scatter.groups < 2 && !several)) return std::nullopt;
  // This is the estimator of a ratio of sums over groups; its residuals are own - ratio * default.
  const double ratio = own / usual;
  const double squares = std::max(
      scatter.own_squares + ratio * (ratio * scatter.default_squares - 2 * scatter.products), 0.0);
  double sigma = 0;
  if (scatter.groups > 1) sigma = std::sqrt(squares * groups / (groups - 1)) / usual.value();
  if (several) sigma = std::max(sigma, over_replays->StandardError());
  const Joules each = usual / static_cast<double>(source.replays().size());
  return ClusterSaving{.percent = 100 * (1 - ratio),
                       .percent_sigma = 100 * sigma,
                       .energy = (1 - ratio) * each,
                       .energy_sigma = sigma * each};
}

std::optional<SampleSummary> ClusterFigureSource::Of(std::string_view figure) const {
  const auto* const found = std::ranges::find(kFigures, figure, &ClusterFigure::name);
  std::vector<double> values;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const double value = found->of(own_[i], usual_[i]);
    // Jobs without any duration make the ratios infinite: there is nothing to compare.
    if (!std::isfinite(value)) return std::nullopt;
    values.push_back(value);
  }
  if (values.empty()) return std::nullopt;
  return Summarize(values);
}

SampleSummary ClusterFigureSource::Of(double (*value)(const ClusterTotals&)) const {
  std::vector<double> values;
  for (const ContenderTotals& own : own_) values.push_back(value(own.totals));
  return Summarize(values);
}

}  // namespace zeus::replay
