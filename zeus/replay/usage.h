#pragma once

#include "zeus/base/units.h"

namespace zeus::replay {

// Time, energy and what they cost.
struct Usage {
  Seconds time{};
  Joules energy{};
  Joules cost{};

  Usage& operator+=(const Usage& other) {
    time += other.time;
    energy += other.energy;
    cost += other.cost;
    return *this;
  }
  friend Usage operator+(Usage a, const Usage& b) { return a += b; }
  friend Usage operator*(double times, const Usage& usage) {
    return {.time = times * usage.time, .energy = times * usage.energy, .cost = times * usage.cost};
  }
};

}  // namespace zeus::replay
