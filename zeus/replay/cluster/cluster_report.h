#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/statistics.h"
#include "zeus/base/units.h"
#include "zeus/replay/cluster/cluster_replay.h"
#include "zeus/replay/cluster/cluster_trace.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

// The results of a cluster replay as JSON for programs and as tables and figures for people.
namespace zeus::replay {

struct Quantiles {
  double median = 0.0;
  double p95 = 0.0;
  double greatest = 0.0;
};

struct WorkloadShare {
  std::int64_t groups = 0;
  std::int64_t jobs = 0;
};

// The properties of a trace on which the outcome of a replay depends.
struct ClusterStatistics {
  std::int64_t jobs = 0;
  std::int64_t groups = 0;
  Quantiles group_size{};      // Counted in jobs.
  Quantiles runtime{};         // Runtimes of single jobs, in seconds.
  double largest_tenth = 0.0;  // Share of all jobs that belong to the largest tenth of the groups.
  double overlapping = 0.0;    // Share of jobs that start while another job of their group runs.
  Seconds span{};              // From the first start to the last end.
  std::map<std::string, WorkloadShare> workloads{};
};

ClusterStatistics Describe(const ClusterTrace& trace);

Json ToJson(const ClusterStatistics& statistics);

// Returns a description of two sentences.
std::string ToText(const ClusterStatistics& statistics);

struct ClusterComparison {
  std::string source{};  // The replayed file, or the spec of the generated cluster.
  std::vector<std::string> contenders{};  // "default" is one of them.
  std::vector<ReplayJob> jobs{};
  ClusterStatistics statistics{};  // Describes the first trace, if there are several.
  // At least one replay; each has one entry per job, in the order of `jobs`.
  std::vector<std::vector<WorkloadTotals>> replays{};
  std::vector<std::string> remarks{};
};

// The format is in docs/formats.md. With several replays it holds means, and standard deviations of
// the ratios.
Json ToJson(const ClusterComparison& comparison);

// Returns a table of totals by policy and workload, and Figure 9 of the Zeus paper.
report::Report ToReport(const ClusterComparison& comparison);

// Returns Figure 9 of the paper: energy and time of each workload relative to `default`.
report::Figure SavingsFigure(const ClusterComparison& comparison);

// The figures by which contenders are compared: ratios to `default` and to the oracle, and regret.

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
