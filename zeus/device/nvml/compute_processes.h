#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"

namespace zeus {

// The ids of the processes that compute on the NVIDIA GPU with this UUID, as NVML lists them for
// this user. A process in a container shows by its id outside. `library` is for tests; nullopt: the
// driver's. Returns kNotFound without NVML, and kUnavailable or kNotSupported when it does not
// tell.
Result<std::vector<int>> ComputeProcesses(const std::string& uuid,
                                          const std::optional<std::string>& library = std::nullopt);

}  // namespace zeus
