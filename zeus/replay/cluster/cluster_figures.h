#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/statistics.h"
#include "zeus/replay/cluster/cluster_report.h"

// The numbers that contenders are compared by.
namespace zeus::replay {

// What one contender took for one workload, or for all, in one replay.
struct ContenderTotals {
  ClusterTotals totals{};
  Joules oracle_cost{};  // What the oracle's choices would cost, expected.
  double regret = 0.0;   // In units of the oracle's cost of a job of average runtime.
  bool has_oracle = true;
};

// A number that tells contenders apart.
struct ClusterFigure {
  std::string_view name;  // "energy_vs_default"
  double (*of)(const ContenderTotals& own, const ContenderTotals& usual);
};
std::span<const ClusterFigure> ClusterFigures();

// The saving of a contender against `default`, everything that it runs charged to it. The sigma is
// one standard deviation, by the scatter between the groups of a replay and, with several replays,
// between these, whichever is larger.
struct ClusterSaving {
  double percent = 0;
  double percent_sigma = 0;
  Joules energy{};  // In one replay.
  Joules energy_sigma{};
};
// Returns the saving on one workload, or on all together; nullopt where nothing was used, or where
// neither two groups nor two replays tell a sigma.
std::optional<ClusterSaving> SavingOf(const ClusterComparison& comparison, std::size_t contender,
                                      std::optional<std::size_t> workload);

// Where the figures of one contender and one workload (nullopt: all of them) come from.
class ClusterFigureSource {
 public:
  ClusterFigureSource(const ClusterComparison& comparison, std::size_t contender,
                      std::optional<std::size_t> workload);

  // Of the replays that have such jobs. Empty: none has.
  const std::vector<ContenderTotals>& replays() const { return own_; }
  // The amounts of `default` in the same replays.
  const std::vector<ContenderTotals>& usual() const { return usual_; }

  // Mean and spread over those replays; nullopt where there is none, or no oracle to compare with.
  std::optional<SampleSummary> Of(std::string_view figure) const;
  SampleSummary Of(double (*value)(const ClusterTotals&)) const;

 private:
  std::vector<ContenderTotals> own_{};
  std::vector<ContenderTotals> usual_{};  // Of `default`.
};

}  // namespace zeus::replay
