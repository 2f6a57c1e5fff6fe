#pragma once

#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_api.h"

namespace zeus::nvml {

// Loads NVML and resolves its functions. Without a path: libnvidia-ml.so.1 (never the unversioned
// name, which is a stub on machines with the CUDA toolkit), then the place where WSL keeps it.
//
// Versioned functions are asked for by the newest name first. The older names in nvml_library.cc
// have the same layout in all that we read.
//
// kNotFound when there is no such file, kInvalidArgument when it is not a library or lacks
// functions without which nothing works (the message names them). The library stays loaded until
// the process ends: a driver library may have threads and exit handlers of its own.
Result<NvmlApi> LoadNvml(const std::optional<std::string>& path = std::nullopt);

}  // namespace zeus::nvml
