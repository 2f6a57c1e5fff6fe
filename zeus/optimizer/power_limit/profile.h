#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"

namespace zeus {

// What a training step takes at one setting of a knob. The sigmas are one standard deviation of
// what this point does not share with the other points of its profile.
struct ProfilePoint {
  Setting setting;
  std::int64_t steps = 0;  // Over how many it was measured.
  Seconds time_per_step{0};
  Seconds time_sigma{0};
  Joules energy_per_step{0};  // Of all GPUs of the job.
  Joules energy_sigma{0};

  Watts average_power() const { return energy_per_step / time_per_step; }
};

// What a profile was measured on: it holds for the same only.
struct ProfileContext {
  std::string job{};
  unsigned batch_size = 0;
  std::string device_model{};
  std::vector<std::string> uuids{};  // Of the first rank's devices, where they have one.
  int devices = 1;                   // Over all ranks.
  std::string driver{};
  WallTime date{};
};

// Time and energy of a step at every setting of a knob that was tried.
struct Profile {
  KnobKind knob = KnobKind::kGpuPowerLimit;
  ProfileContext context{};

  // Over all devices of the job: MAXPOWER of the cost.
  Watts max_power{0};

  // One standard deviation, relative, of an error that the energies of all points share: the gain
  // of the sensors. It matters for statements in joules, not for which setting is best.
  double shared_error = 0;

  // False when the job ended before all settings that were to be tried had been.
  bool complete = false;

  std::vector<ProfilePoint> points{};  // Fastest setting first.
};

}  // namespace zeus
