#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {

// The user's objective, which decides which setting of a profile is best. `select` returns a
// position in profile.points, or an error with the reason why no point is acceptable. Any function
// can be an objective: Selector{.name = "coolest", .select = [](const Profile& profile) { … }}.
struct Selector {
  std::string name;
  std::function<Result<std::size_t>(const Profile& profile)> select;
};

// The objectives below prefer a slower setting only if the measurements prove that it is better:
// they choose the fastest among the settings that are not significantly worse than the best one
// (95 %, one-sided).

// Minimises the energy per step.
Selector Energy();
// Minimises the time per step.
Selector Time();
// Minimises eta * energy + (1 - eta) * MAXPOWER * time per step; eta is between 0 (only
// time counts) and 1 (only energy counts).
Selector ZeusCost(double eta);
// Chooses the slowest setting that takes at most `factor` (1 or more) times as long as the fastest
// one, also within the uncertainty of the measurements.
Selector MaxSlowdownConstraint(double factor);
// Chooses as `objective` does, but nothing slower than MaxSlowdownConstraint(factor) allows.
Selector WithinSlowdown(Selector objective, double factor);

// The cost of a step in joules, with the standard deviation of errors that points do not share.
struct WeighedCost {
  Joules cost;
  Joules sigma;
};
WeighedCost StepCost(const ProfilePoint& point, Watts max_power, double eta);

}  // namespace zeus
