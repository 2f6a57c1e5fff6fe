#include "zeus/optimizer/pipeline/frontier.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace zeus::pipeline {

Ticks WholeTicks(Seconds time, Seconds tick) {
  // A time that was computed from ticks may be a little below them, because of rounding.
  constexpr double kRounding = 1e-4;
  constexpr double kMost = 0x1p60;
  return static_cast<Ticks>(std::clamp(std::floor(time / tick + kRounding), 0.0, kMost));
}

Frontier::Frontier(Parts parts) : parts_(std::move(parts)) {}

Ticks Frontier::TicksWithin(Seconds time) const {
  return std::min(WholeTicks(time, parts_.tick), slowest().ticks);
}

Joules Frontier::EnergyAt(Ticks ticks) const {
  const auto point =
      std::ranges::lower_bound(parts_.points, ticks, std::ranges::greater{}, &FrontierPoint::ticks);
  // `point` is the first point that is not slower than `ticks`.
  if (point == parts_.points.end()) return fastest().energy;
  if (point == parts_.points.begin() || point->ticks == ticks) return point->energy;
  const FrontierPoint& before = *std::prev(point);
  const double share =
      static_cast<double>(before.ticks - ticks) / static_cast<double>(before.ticks - point->ticks);
  return before.energy + share * (point->energy - before.energy);
}

std::vector<Ticks> Frontier::DurationsAt(Ticks ticks) const {
  std::vector<Ticks> durations = parts_.slowest_durations;
  for (const DurationChange& change : parts_.changes) {
    if (change.from <= ticks) break;
    durations[static_cast<std::size_t>(change.computation)] +=
        change.sign * (change.from - std::max(change.to, ticks));
  }
  return durations;
}

}  // namespace zeus::pipeline
