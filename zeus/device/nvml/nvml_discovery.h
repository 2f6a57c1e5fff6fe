#pragma once

#include "zeus/base/result.h"
#include "zeus/device/node.h"
#include "zeus/device/nvml/nvml_api.h"

namespace zeus {

// The NVIDIA GPUs that CUDA would show to this process, called "gpu:0", "gpu:1", … as it numbers
// them (counting from first_gpu_index). Honours ZEUS_NVML_LIBRARY, CUDA_VISIBLE_DEVICES and
// CUDA_DEVICE_ORDER; a value of the last two that means nothing on this machine is
// kInvalidArgument. On a machine without NVIDIA GPUs they are not looked at.
//
// Findings::absent also tells what a user must know about GPUs that were found: that energy is the
// board's where the process has a MIG instance, and that the numbering is uncertain. CUDA's default
// order is "fastest first" by a heuristic of its own. On a node of equal GPUs that is the PCI
// order, which we use; on a mixed node only CUDA itself could tell.
Result<Findings> DiscoverNvidia(const Surroundings& surroundings);

namespace nvml {
// The same with a library that is already loaded.
Result<Findings> DiscoverWith(const NvmlApi& api, const Surroundings& surroundings);
}  // namespace nvml

}  // namespace zeus
