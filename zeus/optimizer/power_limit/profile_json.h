#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/optimizer/power_limit/profile.h"

// Profiles as text: docs/formats.md.
namespace zeus {

// No profile needs more: larger text is refused unread.
inline constexpr std::size_t kLargestProfileText = 1024 * 1024;

// Profiles of GPU power limits also have a field "measurements" as the reference implementation
// writes it, so that its readers understand them: each entry is one step.
std::string ProfileToJson(const Profile& profile);

// Either format. kInvalidArgument, in one sentence, for everything that is not a profile;
// kNotSupported for one of another version. The reference's format does not say on what it was
// measured: the context is empty then, and `devices` is how many GPUs the job had.
Result<Profile> ParseProfile(std::string_view text, int devices = 1);

}  // namespace zeus
