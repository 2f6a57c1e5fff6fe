#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/device/amd/smi.h"

namespace zeus::amd {

// The part of AMD SMI that Zeus calls. Filled by LoadAmdSmi() in production, by lambdas in tests.
// Null where the library does not have it, except for the first five.
struct AmdSmiApi {
  using Return = std::uint32_t;
  using Socket = void*;
  using Processor = void*;

  Return (*init)(std::uint64_t flags) = nullptr;
  Return (*shut_down)() = nullptr;
  // With a null array these two tell the count.
  Return (*get_socket_handles)(std::uint32_t* count, Socket*) = nullptr;
  Return (*get_processor_handles)(Socket, std::uint32_t* count, Processor*) = nullptr;
  Return (*get_gpu_bdf_id)(Processor, std::uint64_t*) = nullptr;

  Return (*get_energy_count)(Processor, std::uint64_t* ticks, float* microjoules_per_tick,
                             std::uint64_t* nanoseconds) = nullptr;
  // Writes amdsmi_power_cap_info_t: the one struct that kept its layout.
  Return (*get_power_cap_info)(Processor, std::uint32_t sensor, void*) = nullptr;
  Return (*set_power_cap)(Processor, std::uint32_t sensor, std::uint64_t) = nullptr;
};

// `path` overrides the search.
Result<AmdSmiApi> LoadAmdSmi(const std::optional<std::string>& path);

// Initialises the library; it is shut down with the last owner of the result.
Result<std::shared_ptr<Smi>> StartAmdSmi(const AmdSmiApi& api);

}  // namespace zeus::amd
