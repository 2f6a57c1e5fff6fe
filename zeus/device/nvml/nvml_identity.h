#pragma once

#include <string>

#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/device/nvml/nvml_sensor.h"

namespace zeus::nvml {

// Who the device is. The UUID is required; what an old driver cannot tell stays empty.
Result<GpuIdentity> ReadIdentity(const Target& target);

// "GPU-…" or "MIG-…".
Result<std::string> ReadUuid(const Target& target);

}  // namespace zeus::nvml
