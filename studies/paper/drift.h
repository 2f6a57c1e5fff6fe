#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/paper/claims.h"
#include "zeus/base/result.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

namespace zeus::replay::paper {

// Epochs to the target of a small classifier that was really trained on 38 slices of data that
// drift (docs/batch-size-drift.md), in place of the paper's Capriccio, which is not public.
inline constexpr int kDriftSlices = 38;
inline constexpr int kDriftMaxEpochs = 60;
inline constexpr int kDriftDefaultBatchSize = 32;

// One per training; nullopt: the target was not reached. Empty for a batch size that was not tried.
std::vector<std::optional<int>> DriftingEpochs(int slice, int batch_size);

// Data that drift: §6.4 and figure 10.

// By slice, mean over the seeds.
struct DriftCourse {
  std::string name{};  // "zeus, window 10"
  std::string role{};
  std::vector<double> energy{};      // Joules.
  std::vector<double> time{};        // Seconds.
  std::vector<double> cost{};        // Joules.
  std::vector<double> batch_size{};  // Geometric mean of the last tries.
};

// Policies with and without a window, one recurrence per slice, and the oracle, which knows every
// slice beforehand. What an epoch takes is that of `job`: sentiment analysis, as in the paper.
Result<std::vector<DriftCourse>> RunDrift(const ReplayJob& job, int seeds);

report::Figure DriftFigure(const std::vector<DriftCourse>& courses);  // Figure 10.
Claim DriftClaim(const std::vector<DriftCourse>& courses);

}  // namespace zeus::replay::paper
