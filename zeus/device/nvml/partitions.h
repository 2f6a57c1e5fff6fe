#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_api.h"
#include "zeus/device/nvml/nvml_readers.h"

namespace zeus::nvml {

// The UUIDs of the MIG instances of a board; empty for one that is not partitioned.
std::vector<std::string> ReadPartitions(const Target& board);

// The UUID of the board that a MIG instance is a part of. kNotFound where no board has it.
Result<std::string> BoardOfPartition(const NvmlApi& api, const std::string& partition);
// The same by the driver of this machine.
Result<std::string> BoardOfPartition(const std::string& partition);

}  // namespace zeus::nvml
