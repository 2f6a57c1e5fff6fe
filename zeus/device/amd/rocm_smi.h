#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/device/amd/smi.h"

namespace zeus::amd {

// The part of ROCm SMI that Zeus calls. Filled by LoadRocmSmi() in production, by lambdas in
// tests. Null where the library is too old to have it, except for the first four.
struct RocmSmiApi {
  using Return = std::uint32_t;

  Return (*init)(std::uint64_t flags) = nullptr;
  Return (*shut_down)() = nullptr;
  Return (*num_monitor_devices)(std::uint32_t*) = nullptr;
  Return (*dev_pci_id_get)(std::uint32_t, std::uint64_t*) = nullptr;

  Return (*dev_name_get)(std::uint32_t, char*, std::size_t) = nullptr;
  Return (*dev_unique_id_get)(std::uint32_t, std::uint64_t*) = nullptr;
  Return (*dev_energy_count_get)(std::uint32_t, std::uint64_t* ticks, float* microjoules_per_tick,
                                 std::uint64_t* nanoseconds) = nullptr;
  // Power and caps are microwatts.
  Return (*dev_power_ave_get)(std::uint32_t, std::uint32_t sensor, std::uint64_t*) = nullptr;
  Return (*dev_current_socket_power_get)(std::uint32_t, std::uint64_t*) = nullptr;
  Return (*dev_power_cap_get)(std::uint32_t, std::uint32_t sensor, std::uint64_t*) = nullptr;
  Return (*dev_power_cap_default_get)(std::uint32_t, std::uint64_t*) = nullptr;
  Return (*dev_power_cap_range_get)(std::uint32_t, std::uint32_t sensor, std::uint64_t* max,
                                    std::uint64_t* min) = nullptr;
  Return (*dev_power_cap_set)(std::uint32_t, std::uint32_t sensor, std::uint64_t) = nullptr;
};

// `path` overrides the search.
Result<RocmSmiApi> LoadRocmSmi(const std::optional<std::string>& path);

// Initialises the library; it is shut down with the last owner of the result.
Result<std::shared_ptr<Smi>> StartRocmSmi(const RocmSmiApi& api);

}  // namespace zeus::amd
