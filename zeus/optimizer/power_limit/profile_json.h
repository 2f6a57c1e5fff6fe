#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/optimizer/power_limit/profile.h"

// The text of profiles (docs/formats.md).
namespace zeus {

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
