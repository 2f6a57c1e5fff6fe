#pragma once

#include <optional>

#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {

// Temperature while the power stays the same on average: a first-order approach from `start` to
// `settled`. Leakage closes a loop (hotter draws more, which heats more); the loop is linear, so
// it only changes where the temperature settles and how fast.
struct ThermalPath {
  Celsius start;
  Celsius settled;
  Seconds time_constant{1.0};

  // Power that leaks beyond the nominal one: leakage * (temperature - reference). Nominal powers
  // are those of a board that has settled in its nominal ambient, as published and recorded ones
  // are; a cold board draws a little less, one in a hot room a little more.
  double leakage_watts_per_kelvin = 0.0;
  Celsius reference;

  Celsius TemperatureAt(Seconds time) const;
  Watts LeakageAt(Seconds time) const;
  Joules LeakageUntil(Seconds time) const;  // From time zero on.

  // When the temperature reaches `target`; nullopt if it never does. Zero if it is there already
  // and goes on in that direction.
  std::optional<Seconds> TimeToRise(Celsius target) const;
  std::optional<Seconds> TimeToFall(Celsius target) const;
};

enum class Leakage {
  kFollowsTemperature,
  kInsideLimit,  // A board that holds its power limit trades leakage for clock.
};

// Computes the path of a board that starts at temperature `start` and draws `power` in a room of
// `ambient`.
ThermalPath Heat(const ThermalSpec& spec, Celsius ambient, Celsius start, Watts power,
                 Leakage leakage);

}  // namespace zeus::sim
