#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::amd {

// The fields that Zeus uses of amdgpu's binary `gpu_metrics` file. A field that the firmware marks
// as not available (all ones) is empty.
struct GpuMetrics {
  // In units of kEnergyTick, since the driver was loaded.
  std::optional<std::uint64_t> energy_accumulator;
  std::optional<Watts> current_power;  // v1.4 and later.
  std::optional<Watts> average_power;  // v1.1 to v1.3.
};

// Decodes the content of the file by the version in its header. kNotSupported for a layout that
// is known to have no energy accumulator (v1.0, v2.x of APUs) or that is not known at all;
// kUnavailable when the bytes contradict their own header.
Result<GpuMetrics> ParseGpuMetrics(std::string_view bytes);

}  // namespace zeus::amd
