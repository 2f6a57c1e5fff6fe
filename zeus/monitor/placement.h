#pragma once

#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus {

// One update of a sensor tells how much energy was used between two instants, not when. Where the
// mean power differs from the level around it, some work (or a pause) of unknown height, length and
// place lies in between. This is the mean over its plausible places, and how far they are apart:
// at the begin of the stretch, at its end, anywhere, or right before instants at which the program
// waited for it.
struct Excess {
  TimePoint begin;
  TimePoint end;
  Watts power;    // Mean over the stretch.
  Watts level;    // The power around the work or the pause.
  Watts extreme;  // The most that the work may have drawn; the least, for a pause.

  // Weights of the places; their sum is one.
  double at_begin = 0.25;
  double at_end = 0.25;
  double anywhere = 0.5;
  double before_instants = 0;
  std::vector<TimePoint> instants{};  // Inside the stretch, in order.
};

// A point of the mean curve of energy inside the stretch.
struct PlacedPoint {
  TimePoint time;
  Joules energy;  // Since the begin of the stretch.
  Joules sigma;   // Zero at both ends of the stretch.
};

// In order of time, the last one at the end of the stretch. Between two points the mean is a
// straight line.
std::vector<PlacedPoint> Place(const Excess& excess);

}  // namespace zeus
