#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// Which energy decides that an operating point is worse than another in every respect.
enum class ParetoFilter {
  kEffective,  // Without the blocking power over its time: what an iteration really pays.
  kMeasured,   // As measured: how the published frontiers were made.
};

// What a computation costs when it takes so many quanta.
struct FitCandidate {
  std::int64_t quanta = 0;
  Joules cost{};  // Effective energy.
};

// The points that a model of the kind must describe: those that no other beats in time and in
// energy, times in whole quanta. Shortest first, each time once.
std::vector<FitCandidate> FitCandidates(const ComputationKind& kind, Watts blocking_power,
                                        Seconds quantum,
                                        ParetoFilter filter = ParetoFilter::kEffective);

// The falling exponential of least squared error over the candidates; deterministic. A kind of one
// candidate gets a constant (a = 0). kInvalidArgument, naming stage and instruction, when the kind
// has no points, or when no falling curve is nearer to them than a constant.
Result<ExponentialModel> FitExponential(const ComputationKind& kind, Watts blocking_power,
                                        Seconds quantum,
                                        ParetoFilter filter = ParetoFilter::kEffective);

// Sum over the candidates.
double SquaredError(const ExponentialModel& model, const std::vector<FitCandidate>& candidates);

}  // namespace zeus::pipeline
