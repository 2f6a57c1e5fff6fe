#pragma once

#include <map>
#include <optional>
#include <string>

#include "zeus/base/result.h"

namespace zeus {

// The device files of the NVIDIA GPUs by their UUIDs: "/dev/nvidia0". Schedulers name GPUs by
// these, and the number in it is no position in any list. `library` is for tests; nullopt: the
// driver's. Returns kNotFound without NVML, and kUnavailable when it does not tell.
Result<std::map<std::string, std::string>> NvidiaDeviceFiles(
    const std::optional<std::string>& library = std::nullopt);

}  // namespace zeus
