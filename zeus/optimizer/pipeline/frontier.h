#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"

namespace zeus::pipeline {

struct FrontierPoint {
  Ticks ticks = 0;
  Seconds time{0};
  Joules energy{};  // Of the iteration, blocking included.
};

// The largest whole number of ticks within a time.
Ticks WholeTicks(Seconds time, Seconds tick);

// A change of a duration while the deadline goes from `from` down to `to`: by `sign` for each tick.
struct DurationChange {
  Ticks from = 0;
  Ticks to = 0;
  std::int32_t computation = 0;
  std::int32_t sign = -1;  // -1: shorter.
};

// The least energy of an iteration for every time that it may take: exact, convex, linear between
// its points. Can be read by many threads.
class Frontier {
 public:
  struct Parts {
    Seconds tick{0};
    std::vector<FrontierPoint> points{};     // Slowest first, times strictly falling.
    std::vector<Ticks> slowest_durations{};  // Of each computation at the first point.
    std::vector<DurationChange> changes{};   // In the order of `from`, falling.
  };
  explicit Frontier(Parts parts);

  const std::vector<FrontierPoint>& points() const { return parts_.points; }
  const FrontierPoint& slowest() const { return parts_.points.front(); }
  const FrontierPoint& fastest() const { return parts_.points.back(); }
  Seconds tick() const { return parts_.tick; }

  // The largest whole number of ticks within `time`, no more than the slowest point needs.
  Ticks TicksWithin(Seconds time) const;

  // Interpolated, in O(log points). Between fastest().ticks and slowest().ticks.
  Joules EnergyAt(Ticks ticks) const;

  // The durations of all computations at that time; they have exactly the energy of EnergyAt().
  std::vector<Ticks> DurationsAt(Ticks ticks) const;

 private:
  Parts parts_;
};

}  // namespace zeus::pipeline
