#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/job_comparison.h"
#include "zeus/report/figure.h"

// Many comparisons side by side: every GPU model, workload, eta and beta that was asked for.
namespace zeus::replay {

// One policy in one of them.
struct SweepRow {
  std::string gpu_model{};
  std::string workload{};
  double eta = 0.5;
  std::optional<double> beta{};  // nullopt: runs are never stopped early.
  std::string policy{};
  std::int64_t recurrences = 0;
  SampleSummary last_five_energy{};  // As ReplaySummary has them, over the seeds.
  SampleSummary last_five_time{};
  SampleSummary last_five_cost{};
  SampleSummary regret_of_50{};
  SampleSummary regret{};
  // Of all recurrences, exploration included, as shares of what the default takes.
  double energy = 0.0;
  double time = 0.0;
  double cost = 0.0;
  double unfinished = 0.0;  // Recurrences of which no try reached the target, mean over the seeds.
};

std::vector<SweepRow> RowsOf(const JobComparison& comparison);

// A policy at one eta and beta, over all GPU models and workloads.
struct SweepMean {
  double eta = 0.5;
  std::optional<double> beta{};
  std::string policy{};
  int settings = 0;
  double energy = 0.0;  // Geometric means of those of the rows.
  double time = 0.0;
  double cost = 0.0;
};

// In the order in which they first appear.
std::vector<SweepMean> GeometricMeans(const std::vector<SweepRow>& rows);

// {"rows": [...], "geometric_means": [...]} (docs/replay.md).
Json SweepJson(const std::vector<SweepRow>& rows);
// Of settings in which not every recurrence reaches the target; empty if there is none.
std::vector<std::string> UnfinishedRemarks(const std::vector<SweepRow>& rows);
report::Report SweepReport(const std::vector<SweepRow>& rows, int seeds);

}  // namespace zeus::replay
