#include "zeus/optimizer/pipeline/periodic_frontier.h"

#include <cmath>
#include <cstddef>
#include <numeric>

namespace zeus::pipeline {
namespace {

// In multiples of the stages: with three of them the hull frontier of a real pipeline still lacks
// segments that larger ones have.
constexpr int kFirstSize = 4;
constexpr int kSecondSize = 5;
// The check is on half of the asked size: segments were seen that exist only from eight times the
// stages on, which a check on six times had not noticed. So below this there is nothing to gain.
constexpr int kLeastSize = 14;

using Points = std::vector<FrontierPoint>;

// The point that lies as far beyond the second as the size does. nullopt where that is no whole
// number of ticks.
std::optional<FrontierPoint> Extrapolate(const FrontierPoint& first, const FrontierPoint& second,
                                         Seconds tick, int microbatches, int stages) {
  const std::int64_t beyond = microbatches - kFirstSize * stages;
  const std::int64_t growth = (second.ticks - first.ticks) * beyond;
  if (growth % stages != 0) return std::nullopt;
  const double share = static_cast<double>(beyond) / static_cast<double>(stages);
  const Ticks ticks = first.ticks + growth / stages;
  return FrontierPoint{.ticks = ticks,
                       .time = tick * static_cast<double>(ticks),
                       .energy = first.energy + share * (second.energy - first.energy)};
}

std::optional<Points> ExtrapolateAll(const Points& first, const Points& second, Seconds tick,
                                     int microbatches, int stages) {
  if (first.size() != second.size()) return std::nullopt;
  Points points;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto point = Extrapolate(first[i], second[i], tick, microbatches, stages);
    if (!point || (!points.empty() && point->ticks >= points.back().ticks)) return std::nullopt;
    points.push_back(*point);
  }
  return points;
}

bool AreTheSame(const Points& predicted, const Points& solved) {
  constexpr double kRounding = 1e-10;
  if (predicted.size() != solved.size()) return false;
  for (std::size_t i = 0; i < solved.size(); ++i) {
    const Joules difference = predicted[i].energy - solved[i].energy;
    if (predicted[i].ticks != solved[i].ticks) return false;
    if (std::abs(difference.value()) > kRounding * std::abs(solved[i].energy.value())) return false;
  }
  return true;
}

}  // namespace

Result<std::optional<std::vector<FrontierPoint>>> ExtrapolateFrontier(const ProblemOfSize& make,
                                                                      const CostTable& costs,
                                                                      int stages, int microbatches,
                                                                      const SolveOptions& options) {
  using Outcome = std::optional<Points>;
  if (microbatches < kLeastSize * stages) return Outcome();
  const std::vector<int> sizes{kFirstSize * stages, kSecondSize * stages, microbatches / 2};
  const int total = std::accumulate(sizes.begin(), sizes.end(), 0);
  std::vector<Points> solved;
  double done = 0;
  for (const int size : sizes) {
    SolveOptions part{};
    if (options.progress)
      part.progress = [&](double share) { return options.progress((done + share * size) / total); };
    ZEUS_TRY(const Problem problem, make(size));
    ZEUS_TRY(const Frontier frontier, SolveFrontier(problem, costs, part));
    solved.push_back(frontier.points());
    done += size;
  }
  const auto check = ExtrapolateAll(solved[0], solved[1], costs.tick, sizes.back(), stages);
  if (!check || !AreTheSame(*check, solved[2])) return Outcome();
  return ExtrapolateAll(solved[0], solved[1], costs.tick, microbatches, stages);
}

}  // namespace zeus::pipeline
