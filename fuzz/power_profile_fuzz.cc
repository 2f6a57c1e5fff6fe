#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/optimizer/power_limit/profile.h"

// Reads profiles that users may have edited, truncated or copied from elsewhere. Input that was
// accepted is written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = zeus::ParseProfile(text, 2);
  if (!profile.ok()) return 0;
  if (!zeus::ParseProfile(ProfileToJson(profile.value())).ok()) __builtin_trap();
  return 0;
}
