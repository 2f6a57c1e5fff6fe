#pragma once

#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/replay/paper/claims.h"
#include "zeus/replay/replay_job.h"
#include "zeus/report/figure.h"

// Data that drift: §6.4 and figure 10.
namespace zeus::replay::paper {

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
