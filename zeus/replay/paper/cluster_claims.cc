#include "zeus/replay/paper/cluster_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "zeus/replay/cluster/cluster_figures.h"
#include "zeus/replay/paper/drawing.h"

namespace zeus::replay::paper {
namespace {

// One figure of one contender on one workload.
struct WorkloadFigure {
  std::string workload{};
  SampleSummary value{};  // Over the replays.
};

std::string OtherCluster(const ClusterComparison& cluster) {
  return fmt::format(
      "depends on how often groups recur: here {:.0f} jobs per group on average, in generated "
      "clusters; the paper's trace is not public in the form that it was replayed",
      static_cast<double>(cluster.statistics.jobs) /
          static_cast<double>(std::max<std::int64_t>(1, cluster.statistics.groups)));
}

// Of one figure, by workload: mean over the replays; nullopt where the cluster has no such jobs.
std::vector<std::optional<double>> ByWorkload(const ClusterComparison& cluster,
                                              std::string_view contender, std::string_view figure) {
  const auto index = static_cast<std::size_t>(std::ranges::find(cluster.contenders, contender) -
                                              cluster.contenders.begin());
  std::vector<std::optional<double>> values;
  for (std::size_t workload = 0; workload < cluster.jobs.size(); ++workload) {
    const auto summary = ClusterFigureSource(cluster, index, workload).Of(figure);
    values.push_back(summary ? std::optional(summary->mean) : std::nullopt);
  }
  return values;
}

// Of zeus, from the least to the greatest mean.
std::vector<WorkloadFigure> SortedOfZeus(const ClusterComparison& cluster,
                                         std::string_view figure) {
  const auto index = static_cast<std::size_t>(std::ranges::find(cluster.contenders, "zeus") -
                                              cluster.contenders.begin());
  std::vector<WorkloadFigure> figures;
  for (std::size_t workload = 0; workload < cluster.jobs.size(); ++workload)
    if (const auto summary = ClusterFigureSource(cluster, index, workload).Of(figure))
      figures.push_back({cluster.jobs[workload].title, *summary});
  std::ranges::sort(figures, {}, [](const WorkloadFigure& entry) { return entry.value.mean; });
  return figures;
}

// "-33.1 ± 0.4 % (NeuMF)": how far from the default.
std::string ChangeText(const WorkloadFigure& figure) {
  return fmt::format("{:+.1f} ± {:.1f} % ({})", 100 * (figure.value.mean - 1),
                     100 * figure.value.StandardDeviation(), figure.workload);
}

// The paper's range, widened by what its whole percents are rounded by, encloses ours.
Claim RangeClaim(const ClusterComparison& cluster, std::string_view figure, Claim claim,
                 double paper_least, double paper_greatest) {
  constexpr double kRounding = 0.005;
  const std::vector<WorkloadFigure> sorted = SortedOfZeus(cluster, figure);
  if (sorted.empty()) return claim;
  claim.ours = fmt::format("{} to {}", ChangeText(sorted.front()), ChangeText(sorted.back()));
  claim.verdict = Holds(sorted.front().value.mean >= paper_least - kRounding &&
                        sorted.back().value.mean <= paper_greatest + kRounding);
  claim.remark = OtherCluster(cluster);
  return claim;
}

Claim OutperformsClaim(const ClusterComparison& cluster) {
  const auto of_zeus = ByWorkload(cluster, "zeus", "energy_vs_default");
  const auto of_grid = ByWorkload(cluster, "grid", "energy_vs_default");
  std::string except;
  for (std::size_t i = 0; i < of_zeus.size(); ++i)
    if (of_zeus[i] && !(*of_zeus[i] < 1.0 && *of_zeus[i] < *of_grid[i]))
      except += (except.empty() ? "" : ", ") + cluster.jobs[i].title;
  return {.section = "§6.3",
          .claim = "on a cluster zeus uses less energy than default and grid search",
          .paper = "all workloads",
          .ours = except.empty() ? "all workloads" : "all workloads but " + except,
          .verdict = Holds(except.empty())};
}

Claim GridWorseClaim(const ClusterComparison& cluster) {
  std::string worse;
  const auto of_grid = ByWorkload(cluster, "grid", "energy_vs_default");
  for (std::size_t i = 0; i < of_grid.size(); ++i)
    if (of_grid[i] && *of_grid[i] > 1.0)
      worse += (worse.empty() ? "" : ", ") + cluster.jobs[i].title;
  return {.section = "§6.3",
          .claim = "grid search is sometimes worse than default",
          .paper = "stated",
          .ours = worse.empty() ? "never" : worse,
          .verdict = Holds(!worse.empty())};
}

Claim EnergyClaim(const ClusterComparison& cluster) {
  return RangeClaim(
      cluster, "energy_vs_default",
      {.section = "§6.3", .claim = "on a cluster zeus changes energy", .paper = "-52 % to -7 %"},
      0.48, 0.93);
}

Claim TimeClaim(const ClusterComparison& cluster) {
  return RangeClaim(cluster, "time_vs_default",
                    {.section = "§6.3",
                     .claim = "on a cluster zeus changes training time",
                     .paper = "-33 % to +16 %"},
                    0.67, 1.16);
}

Claim RegretClaim(const ClusterComparison& cluster) {
  const auto of_zeus = ByWorkload(cluster, "zeus", "regret");
  const auto of_grid = ByWorkload(cluster, "grid", "regret");
  int less = 0, all = 0;
  for (std::size_t i = 0; i < of_zeus.size(); ++i) {
    if (!of_zeus[i] || !of_grid[i]) continue;
    ++all;
    if (*of_zeus[i] < *of_grid[i]) ++less;
  }
  return {.section = "§6.3",
          .claim = "on a cluster zeus has less cumulative regret than grid search",
          .paper = "significantly",
          .ours = fmt::format("on {} of {} workloads", less, all),
          .verdict = Holds(less == all)};
}

}  // namespace

std::vector<Claim> ClusterClaims(const ClusterComparison& cluster) {
  return {OutperformsClaim(cluster), GridWorseClaim(cluster), EnergyClaim(cluster),
          TimeClaim(cluster), RegretClaim(cluster)};
}

}  // namespace zeus::replay::paper
