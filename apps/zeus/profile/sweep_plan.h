#pragma once

#include <cstddef>
#include <optional>

#include "zeus/base/units.h"

namespace zeus::cli {

// Which setting is tried when. Every other round goes back the way the one before it came, so that
// a program that gets slower or faster all the time does so equally at every setting.
struct SweepPlan {
  std::size_t settings = 0;
  std::optional<unsigned> rounds = 1;  // nullopt: without end.
  Seconds warmup{1};                   // Not measured after each change.
  Seconds slice{5};

  struct Position {
    unsigned round;
    std::size_t setting;
  };
  // nullopt after the last slice.
  std::optional<Position> At(std::size_t slice_number) const;

  // How long one round takes, and all of them (one, when there is no end).
  Seconds RoundTime() const { return static_cast<double>(settings) * (warmup + slice); }
  Seconds TotalTime() const { return rounds.value_or(1) * RoundTime(); }
};

}  // namespace zeus::cli
