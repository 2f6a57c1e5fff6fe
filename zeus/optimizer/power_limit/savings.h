#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "zeus/base/units.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {

// Time and energy of a whole job, with one standard deviation each.
struct JobUse {
  Seconds time{0};
  Seconds time_sigma{0};
  Joules energy{0};
  Joules energy_sigma{0};
};

// Estimates what a job that used `used` would have used if all its steps had run at one point of
// its profile (Zeus §5). `steps` is the number of steps that it ran at each point. Work between
// steps (evaluation, checkpoints) is assumed to stay the same.
JobUse UseAtPoint(const JobUse& used, const Profile& profile, std::span<const std::int64_t> steps,
                  std::size_t point);

// Returns how much more `steps` steps use at the point `to` than at the point `from`.
JobUse ChangeBetween(const Profile& profile, std::int64_t steps, std::size_t from, std::size_t to);

}  // namespace zeus
