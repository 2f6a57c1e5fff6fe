#pragma once

#include <string>
#include <vector>

#include "zeus/device/nvml/nvml_readers.h"

namespace zeus::nvml {

// The UUIDs of the MIG instances of a board; empty for one that is not partitioned.
std::vector<std::string> ReadPartitions(const Target& board);

}  // namespace zeus::nvml
