#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {

// Which setting of a profile is best: the user's objective. `select` returns a position in
// profile.points, or the reason why no point will do. Anything callable can be one:
// Selector{.name = "coolest", .select = [](const Profile& profile) { … }}.
struct Selector {
  std::string name;
  std::function<Result<std::size_t>(const Profile& profile)> select;
};

// The objectives below call a slower setting better only if the measurements say so: of the
// settings that are not worse than the best beyond doubt (95 %, one-sided), the fastest is taken.

// Least energy per step.
Selector Energy();
// Least time per step.
Selector Time();
// Least eta * energy + (1 - eta) * MAXPOWER * time; eta between 0 (time) and 1 (energy).
Selector ZeusCost(double eta);
// The slowest setting that takes at most `factor` (1 or more) times as long as the fastest one.
Selector MaxSlowdownConstraint(double factor);

// What a step costs, in joules, with one standard deviation of what the points do not share.
struct WeighedCost {
  Joules cost;
  Joules sigma;
};
WeighedCost StepCost(const ProfilePoint& point, Watts max_power, double eta);

}  // namespace zeus
