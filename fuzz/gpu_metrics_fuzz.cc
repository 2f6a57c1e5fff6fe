#include <cstddef>
#include <cstdint>
#include <string_view>

#include "zeus/device/amd/sysfs_board.h"

// Parses amdgpu's binary metrics and its tables of clocks.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)zeus::amd::ParseGpuMetrics(bytes);
  (void)zeus::amd::ParseClockLevels(bytes);
  (void)zeus::amd::ParseOverdriveRange(bytes, zeus::ClockDomain::kGraphics);
  return 0;
}
