#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/budget/problem.h"

// How watts are shared out by those who do not know what they bring: for comparisons, and for
// people who want to see what the knowledge is worth.
namespace zeus::water_filling {

enum class Rival {
  kUniform,  // Every GPU is capped at the same share of its highest limit.
  kEqual,    // Every GPU gets the same watts.
  kDemand,   // Every GPU is capped at the same multiple, up to 2, of what it draws without a cap.
  kMinMax,   // Every job gets the same slowdown; watts that are left then stay where they are.
};
inline constexpr std::array kRivals{Rival::kUniform, Rival::kEqual, Rival::kDemand, Rival::kMinMax};

// "uniform", "equal", "demand", "min-max".
std::string_view ToText(Rival rival);

// Returns a limit for every job: the highest that the rule allows while all domains have room, in
// whole steps and within the range of each job. All jobs are at their lowest where not even those
// fit. Returns the errors of Check().
Result<std::vector<Watts>> RivalLimits(const Problem& problem, Rival rival);

// The consequences of limits, however they were found.
struct Outcome {
  double mean_slowdown = 1;  // Over GPUs, unweighted.
  double worst_slowdown = 1;
  double throughput = 1;  // Mean over GPUs of 1 / slowdown.
  Watts draw{};           // Expected of all GPUs together.
  // Energy of the same work relative to what it takes at the highest limits.
  double energy = 1;
};
Outcome OutcomeOf(const Problem& problem, std::span<const Watts> limits);

}  // namespace zeus::water_filling
