#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/device/amd/smi.h"
#include "zeus/device/node.h"

namespace zeus {

// The AMD GPUs of this machine that this process may use, in the order in which ROCm's runtime
// numbers them. A board is read through AMD SMI where that works, else through ROCm SMI, else
// through sysfs alone, and is listed once.
//
// ZEUS_AMD_SMI_LIBRARY and ZEUS_ROCM_SMI_LIBRARY name the libraries to use. ROCR_VISIBLE_DEVICES
// and then HIP_VISIBLE_DEVICES select boards; without the latter HIP obeys CUDA_VISIBLE_DEVICES,
// and so does Zeus unless the machine runs NVIDIA's driver too, whose GPUs are then meant.
// kInvalidArgument quotes a value that names no board here.
Result<Findings> DiscoverAmd(const Surroundings& surroundings);

namespace amd {

// How the libraries are opened and initialised, given the path that overrides the search. Tests
// put fakes here. kNotFound: not installed.
struct SmiStarters {
  using Start = std::function<Result<std::shared_ptr<Smi>>(const std::optional<std::string>& path)>;
  Start amd_smi;
  Start rocm_smi;
};

Result<Findings> Discover(const Surroundings& surroundings, const SmiStarters& starters);

}  // namespace amd
}  // namespace zeus
