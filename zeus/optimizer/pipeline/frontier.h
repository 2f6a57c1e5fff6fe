#pragma once

#include <cstdint>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/convex_cost.h"

namespace zeus::pipeline {

// A vertex of the time-energy frontier.
struct FrontierPoint {
  Ticks ticks = 0;
  Seconds time{0};
  Joules energy{};  // Energy of the iteration, including blocking power.
};

// Returns the largest whole number of ticks within a time.
Ticks WholeTicks(Seconds time, Seconds tick);

// A change of one computation's duration while the time of the iteration falls from `from` to `to`:
// by `sign` ticks for each tick of it.
struct DurationChange {
  Ticks from = 0;
  Ticks to = 0;
  std::int32_t computation = 0;
  std::int32_t sign = -1;  // -1: it becomes shorter; 1: longer.
};

// The least energy of an iteration as a function of its time: exact, convex, and linear between the
// points. Durations are not kept for each point but as a list of changes from the slowest one.
// Immutable, so many threads may read it.
class Frontier {
 public:
  struct Parts {
    Seconds tick{0};
    std::vector<FrontierPoint> points{};     // Slowest first, times strictly falling.
    std::vector<Ticks> slowest_durations{};  // Duration of each computation at the first point.
    std::vector<DurationChange> changes{};   // Sorted by `from`, falling.
  };
  explicit Frontier(Parts parts);

  const std::vector<FrontierPoint>& points() const { return parts_.points; }
  const FrontierPoint& slowest() const { return parts_.points.front(); }
  const FrontierPoint& fastest() const { return parts_.points.back(); }
  Seconds tick() const { return parts_.tick; }

  // The largest whole number of ticks within `time`, no more than the slowest point needs.
  Ticks TicksWithin(Seconds time) const;

  // Interpolates in O(log points). `ticks` is between fastest().ticks and slowest().ticks.
  Joules EnergyAt(Ticks ticks) const;

  // Returns durations of all computations at that time; their energy is exactly EnergyAt().
  std::vector<Ticks> DurationsAt(Ticks ticks) const;

 private:
  Parts parts_;
};

}  // namespace zeus::pipeline
