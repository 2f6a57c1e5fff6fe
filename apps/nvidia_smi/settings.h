#pragma once

#include <string_view>
#include <vector>

#include "apps/nvidia_smi/gpu.h"

namespace zeus::nvidia_smi {

// Each applies to all of the GPUs, prints a sentence for each, and returns the exit code. It stops
// at the first GPU that refuses.
int SetPowerLimit(const std::vector<Gpu>& gpus, std::string_view watts);
int LockGraphicsClocks(const std::vector<Gpu>& gpus, std::string_view range);
int LockMemoryClocks(const std::vector<Gpu>& gpus, std::string_view range);
int ResetGraphicsClocks(const std::vector<Gpu>& gpus);
int ResetMemoryClocks(const std::vector<Gpu>& gpus);
int SetApplicationsClocks(const std::vector<Gpu>& gpus, std::string_view memory_and_graphics);
int ResetApplicationsClocks(const std::vector<Gpu>& gpus);
int SetPersistenceMode(const std::vector<Gpu>& gpus, std::string_view mode);

}  // namespace zeus::nvidia_smi
