#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/statistics.h"
#include "zeus/replay/cluster/cluster_report.h"

// The figures by which contenders are compared: ratios to `default` and to the oracle, and regret.
namespace zeus::replay {

// Usage of one contender for one workload, or for all of them, in one replay.
struct ContenderTotals {
  ClusterTotals totals{};
  Joules oracle_cost{};  // Expected cost of the same jobs with the oracle's choices.
  double regret = 0.0;   // In units of the oracle's cost for a job of average runtime.
  bool has_oracle = true;
};

// A named figure, computed from the totals of a contender (`own`) and of `default` (`usual`).
struct ClusterFigure {
  std::string_view name;  // "energy_vs_default"
  double (*of)(const ContenderTotals& own, const ContenderTotals& usual);
};
std::span<const ClusterFigure> ClusterFigures();

// The saving of a contender against `default`. Everything that the contender runs is charged to it,
// exploration included. A sigma is one standard deviation, estimated from the scatter between the
// groups of a replay and, with several replays, from the scatter between replays; the larger one
// counts.
struct ClusterSaving {
  double percent = 0;
  double percent_sigma = 0;
  Joules energy{};  // Joules saved per replay.
  Joules energy_sigma{};
};
// Returns the saving on one workload, or on all together. nullopt: `default` used no energy, or
// there are neither two groups nor two replays from which to estimate a sigma.
std::optional<ClusterSaving> ComputeSaving(const ClusterComparison& comparison,
                                           std::size_t contender,
                                           std::optional<std::size_t> workload);

// Computes the figures of one contender for one workload (nullopt: all workloads together).
class ClusterFigureSource {
 public:
  ClusterFigureSource(const ClusterComparison& comparison, std::size_t contender,
                      std::optional<std::size_t> workload);

  // The totals of the contender, one entry for each replay that has jobs of this workload.
  const std::vector<ContenderTotals>& replays() const { return own_; }
  // The totals of `default` in the same replays.
  const std::vector<ContenderTotals>& usual() const { return usual_; }

  // Returns mean and spread of a figure over those replays; nullopt if there are none, or if the
  // figure needs an oracle and there is none.
  std::optional<SampleSummary> Of(std::string_view figure) const;
  SampleSummary Of(double (*value)(const ClusterTotals&)) const;

 private:
  std::vector<ContenderTotals> own_{};
  std::vector<ContenderTotals> usual_{};  // Totals of `default`.
};

}  // namespace zeus::replay
