#pragma once

#include <algorithm>
#include <cstddef>
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

// The model by which measured points become a convex cost.
enum class CostKind {
  kHull,         // The lower convex hull of the measured points, linear in between.
  kExponential,  // Perseus' model: a fitted exponential in steps of Problem::quantum.
};

// Times in whole ticks, so that comparisons are exact.
using Ticks = std::int64_t;
// Energy per tick in CostTable::slope_unit.
using Slope = std::int64_t;

// Effective energy as a function of duration: falling, convex, and linear between breakpoints.
struct ConvexCost {
  std::vector<Ticks> times{};   // Ascending; at least one.
  std::vector<Slope> slopes{};  // slopes[k]: energy that a tick saves from times[k-1] to times[k];
                                // descending from slopes[1], all positive. slopes[0] is not used.
  Joules at_longest{};          // The energy at times.back().

  Ticks shortest() const { return times.front(); }
  Ticks longest() const { return times.back(); }
  // Returns by how much the energy at `duration`, which is between shortest() and longest(), is
  // above that at longest(), in slope units.
  double SlopesAbove(Ticks duration) const;
};

// The costs of a problem's kinds in exact integers.
struct CostTable {
  CostKind model = CostKind::kHull;
  Seconds tick{1e-6};
  double slope_unit = 1e-12;        // Joules per tick.
  std::vector<ConvexCost> costs{};  // One for each of Problem::kinds.

  Joules At(int kind, Ticks duration) const;
};

// Makes the costs of all kinds. A tick is a microsecond for the hull and Problem::quantum for the
// exponential model. Kinds without a model are fitted; kInvalidArgument names one that cannot be.
Result<CostTable> MakeCosts(const Problem& problem, CostKind kind);

// Returns the time of an iteration in which every computation takes `duration(its cost)` ticks.
template <class Duration>
Ticks LongestPath(const Problem& problem, const CostTable& costs, Duration duration) {
  std::vector<Ticks> ends(problem.computations.size(), 0);
  Ticks longest = 0;
  for (const int computation : problem.graph.topological_order()) {
    const auto at = At(computation);
    const auto kind = At(problem.computations[at].kind);
    Ticks start = 0;
    for (const int before : problem.graph.Predecessors(computation))
      start = std::max(start, ends[At(before)]);
    ends[at] = start + duration(costs.costs[kind]);
    longest = std::max(longest, ends[at]);
  }
  return longest;
}

// Returns the time of the fastest iteration, at which every frontier ends.
inline Ticks FastestTicks(const Problem& problem, const CostTable& costs) {
  return LongestPath(problem, costs, [](const ConvexCost& cost) { return cost.shortest(); });
}

}  // namespace zeus::pipeline
