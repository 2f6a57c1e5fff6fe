#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/job_comparison.h"
#include "zeus/report/figure.h"

// Compares policies in many settings: every GPU model, workload, eta and beta that was asked for.
namespace zeus::replay {

// The figures of one policy in one setting.
struct SweepRow {
  std::string gpu_model{};
  std::string workload{};
  double eta = 0.5;
  std::optional<double> beta{};  // nullopt: runs are never stopped early.
  std::string policy{};
  std::int64_t recurrences = 0;
  SampleSummary last_five_energy{};  // As in ReplaySummary, over the seeds.
  SampleSummary last_five_time{};
  SampleSummary last_five_cost{};
  SampleSummary regret_of_50{};
  SampleSummary regret{};
  // Usage over all recurrences, exploration included, relative to the default.
  double energy = 0.0;
  double time = 0.0;
  double cost = 0.0;
  double unfinished = 0.0;  // Mean over the seeds of the recurrences that never reached the target.
};

std::vector<SweepRow> MakeSweepRows(const JobComparison& comparison);

// The mean of one policy at one eta and beta over all GPU models and workloads.
struct SweepMean {
  double eta = 0.5;
  std::optional<double> beta{};
  std::string policy{};
  int settings = 0;
  double energy = 0.0;  // Geometric means over the rows, as are time and cost.
  double time = 0.0;
  double cost = 0.0;
};

// Returns the means in the order in which their policies and settings first appear in `rows`.
std::vector<SweepMean> GeometricMeans(const std::vector<SweepRow>& rows);

// Returns {"rows": [...], "geometric_means": [...]} (docs/replay.md).
Json SweepJson(const std::vector<SweepRow>& rows);
// Returns sentences about settings in which not every recurrence reaches the target.
std::vector<std::string> UnfinishedRemarks(const std::vector<SweepRow>& rows);
report::Report SweepReport(const std::vector<SweepRow>& rows, int seeds);

}  // namespace zeus::replay
