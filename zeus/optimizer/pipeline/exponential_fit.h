#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// The energy by which an operating point is compared with others that are faster: points that
// another one beats in both are dropped.
enum class ParetoFilter {
  kEffective,  // Energy less blocking power over its time, which is what an iteration pays.
  kMeasured,   // Energy as measured, with which the published frontiers were made.
};

// The cost of a computation with that duration.
struct FitCandidate {
  std::int64_t quanta = 0;
  Joules cost{};  // Effective energy of the computation.
};

// Returns the points that a model of the kind has to describe: those that no other one beats in
// time and in energy, with times in whole quanta. Shortest first, each time once.
std::vector<FitCandidate> FitCandidates(const ComputationKind& kind, Watts blocking_power,
                                        Seconds quantum,
                                        ParetoFilter filter = ParetoFilter::kEffective);

// Fits the falling exponential with the least squared error over the candidates (Perseus' model of
// a computation). For a given decay the other two parameters are linear least squares, so the fit
// is a search over the decay alone: coarse over its whole range, then golden-section.
// Deterministic. A kind with one candidate gets a constant (a = 0). Returns kInvalidArgument,
// naming stage and instruction, when the kind has no points, or when no falling curve is nearer to
// them than a constant.
Result<ExponentialModel> FitExponential(const ComputationKind& kind, Watts blocking_power,
                                        Seconds quantum,
                                        ParetoFilter filter = ParetoFilter::kEffective);

// Returns the sum of squared errors over the candidates.
double SquaredError(const ExponentialModel& model, const std::vector<FitCandidate>& candidates);

}  // namespace zeus::pipeline
