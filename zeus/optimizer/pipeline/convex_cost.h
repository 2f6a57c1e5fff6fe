#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

enum class CostKind {
  kHull,         // The lower convex hull of the measured points, linear in between.
  kExponential,  // The reference's model: a fitted exponential in steps of Problem::quantum.
};

// Time in whole ticks: comparisons are exact.
using Ticks = std::int64_t;
// Energy per tick in CostTable::slope_unit.
using Slope = std::int64_t;

// Effective energy over duration: falling, convex, linear between breakpoints.
struct ConvexCost {
  std::vector<Ticks> times{};   // Ascending; at least one.
  std::vector<Slope> slopes{};  // slopes[k]: what a tick saves between times[k-1] and times[k];
                                // descending from slopes[1], all positive. slopes[0] is not used.
  Joules at_longest{};          // At times.back().

  Ticks shortest() const { return times.front(); }
  Ticks longest() const { return times.back(); }
  // Between shortest() and longest().
  double SlopesAbove(Ticks duration) const;  // Sum over (duration, longest], in slope units.
};

// The costs of a problem's kinds in exact integers.
struct CostTable {
  CostKind model = CostKind::kHull;
  Seconds tick{1e-6};
  double slope_unit = 1e-12;        // Joules per tick.
  std::vector<ConvexCost> costs{};  // As Problem::kinds.

  Joules At(int kind, Ticks duration) const;
};

// Hull: microseconds. Exponential: Problem::quantum; kinds without a model are fitted, and
// kInvalidArgument names the one that cannot be.
Result<CostTable> MakeCosts(const Problem& problem, CostKind kind);

// How long an iteration takes when every computation takes as long as `duration` says of its cost.
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

// The fast end of every frontier.
inline Ticks FastestTicks(const Problem& problem, const CostTable& costs) {
  return LongestPath(problem, costs, [](const ConvexCost& cost) { return cost.shortest(); });
}

}  // namespace zeus::pipeline
