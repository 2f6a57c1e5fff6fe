#pragma once

#include <cstdint>
#include <optional>

#include "zeus/base/units.h"

namespace zeus {

// How long each setting is tried. Steps and times count only while training, across epochs.
struct SliceRule {
  // A phase ends when it had so many steps, or so much time, whichever comes first.
  struct Length {
    std::optional<std::int64_t> steps{};
    std::optional<Seconds> time{};
  };

  std::int64_t wait_steps = 1;  // Before the first setting is tried: the first steps are unusual.
  Length warmup{.time = Seconds(0.5)};   // After each change, not measured.
  Length profile{.time = Seconds(5.0)};  // Zeus §5. Measured; two steps at least.

  // A slice ends early once time and energy per step are known this well, relative, one standard
  // deviation; 0: never.
  double enough_precision = 0.002;

  // Fixed numbers of steps, never ended early, as in the reference implementation.
  static SliceRule BySteps(std::int64_t wait = 1, std::int64_t warmup = 10,
                           std::int64_t profile = 40) {
    return {.wait_steps = wait,
            .warmup = {.steps = warmup},
            .profile = {.steps = profile},
            .enough_precision = 0};
  }
};

}  // namespace zeus
