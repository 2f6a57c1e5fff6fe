#pragma once

#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/knobs/knob.h"

namespace zeus {

// The settings that a knob has: all in a range, or a list where the hardware knows steps only.
struct KnobChoices {
  Setting lowest;
  Setting highest;
  std::vector<Setting> steps{};  // Ascending, from lowest to highest; empty for a range.
};

// Returns the settings that both have; kNotSupported if there are none.
Result<KnobChoices> InBoth(const KnobChoices& a, const KnobChoices& b);

// Those that are not above `ceiling`; at least the lowest one.
KnobChoices UpTo(const Setting& ceiling, KnobChoices choices);

// From the highest down by `stride`, and the lowest. A stride of zero means 25 W in a range and
// 15 steps in a list; less than 1 W in a range means 1 W. kInvalidArgument for a stride that is
// negative or of another unit.
Result<std::vector<Setting>> Spread(const KnobChoices& choices, const Setting& stride);

}  // namespace zeus
