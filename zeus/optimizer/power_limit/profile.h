#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/knobs/knob.h"

namespace zeus {

// Time and energy of a training step at one setting of a knob. The sigmas are standard deviations
// of the errors that this point does not share with the other points of its profile.
struct ProfilePoint {
  Setting setting;
  std::int64_t steps = 0;  // Number of steps over which it was measured.
  Seconds time_per_step{0};
  Seconds time_sigma{0};
  Joules energy_per_step{0};  // Energy of all GPUs of the job.
  Joules energy_sigma{0};

  Watts average_power() const { return energy_per_step / time_per_step; }
};

// The job and the devices on which a profile was measured; it holds for no others.
struct ProfileContext {
  std::string job{};
  unsigned batch_size = 0;
  std::string device_model{};
  std::vector<std::string> uuids{};  // UUIDs of the first rank's devices, if they have any.
  int devices = 1;                   // Number of devices of all ranks.
  std::string driver{};
  WallTime date{};
};

// Time and energy of a step at every setting of a knob that was tried.
struct Profile {
  KnobKind knob = KnobKind::kGpuPowerLimit;
  ProfileContext context{};

  // MAXPOWER of the cost: the maximum power of all devices of the job together.
  Watts max_power{0};

  // Relative standard deviation of the error that the energies of all points share, which is the
  // gain of the sensors. It matters for results in joules, not for the choice of the best setting.
  double shared_error = 0;

  // False when the job ended before all settings were tried.
  bool complete = false;

  std::vector<ProfilePoint> points{};  // Fastest setting first.
};

// The text of profiles (docs/formats.md).

// No profile is larger: larger text is refused without parsing it.
inline constexpr std::size_t kLargestProfileText = 1024 * 1024;

// Profiles of GPU power limits also have a field "measurements" as the reference implementation
// writes it, so that its readers understand them: each entry is one step.
std::string ProfileToJson(const Profile& profile);

// Parses either format. Returns kInvalidArgument for text that is not a profile, and kNotSupported
// for another version of the format. The reference's format does not contain the context, which is
// then empty; `devices` is the number of GPUs of the job.
Result<Profile> ParseProfile(std::string_view text, int devices = 1);

}  // namespace zeus
