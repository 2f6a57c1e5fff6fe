#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/device/amd/board.h"

namespace zeus::amd {

// A management library of the vendor, initialised: ROCm SMI or AMD SMI. Only calls with scalar
// results are used, because their structs changed size between releases. What needs a struct
// (clock tables, AMD SMI's power) is read from sysfs, as the libraries do themselves.
// Thread-safe.
class Smi {
 public:
  using Handle = std::uintptr_t;

  struct Device {
    Handle handle;
    std::string pci_address;
    std::string model;  // Empty if the library does not tell.
    std::string uuid;
  };

  Smi() = default;
  Smi(const Smi&) = delete;
  Smi& operator=(const Smi&) = delete;
  virtual ~Smi() = default;

  virtual Result<std::vector<Device>> Devices() = 0;
  virtual Result<CounterSample> Energy(Handle device) = 0;
  virtual Result<Watts> Power(Handle device, PowerKind kind) = 0;
  virtual Result<PowerCap> Cap(Handle device) = 0;
  virtual Status SetCap(Handle device, Watts limit) = 0;
};

// One row of a library's table of status codes.
struct SmiStatus {
  std::uint32_t status;
  ErrorCode code;
  const char* meaning;
};

// How a library answers: "rsmi_dev_power_cap_set: permission denied (status 4)".
struct SmiCaller {
  const char* library;
  std::span<const SmiStatus> statuses;  // Every one but success, which is 0 in both libraries.

  // A status that is not in the table is kInternal.
  Error ErrorFor(std::uint32_t status, const char* name) const;
  Error Missing(const char* name) const;

  // Calls `function` if this version of the library has it.
  template <class... Parameters, class... Arguments>
  Status Call(const char* name, std::uint32_t (*function)(Parameters...),
              Arguments... arguments) const {
    if (function == nullptr) return Missing(name);
    const std::uint32_t status = function(arguments...);
    if (status != 0) return ErrorFor(status, name);
    return Ok();
  }
};

// A counter as both libraries return it. They say 15.3 uJ per tick and mean 2^-16 J.
Result<CounterSample> SampleFromSmi(std::uint64_t ticks, float microjoules_per_tick);

// A power cap in the units of a library.
struct RawCap {
  std::uint64_t min;
  std::uint64_t max;
  std::uint64_t default_limit;
  std::uint64_t current;
};

// Caps are microwatts, except from an AMD SMI built for hypervisors, which says watts. No board
// has a maximum below 0.1 W or above 100 kW, so the maximum tells.
double MicrowattsPerUnit(const RawCap& cap);
PowerCap CapFromSmi(const RawCap& cap);

// A board read through a vendor library, and through `beneath` (sysfs) for all that the library
// does not offer. Thread-safe.
class SmiBoard final : public Board {
 public:
  SmiBoard(std::shared_ptr<Smi> smi, const Smi::Device& device, std::unique_ptr<Board> beneath);

  Result<CounterSample> Energy() override;
  Result<Watts> Power(PowerKind kind) override;
  Result<PowerCap> Cap() override;
  Status SetCap(Watts limit) override;

  Result<Celsius> Temperature() override { return beneath_->Temperature(); }
  Result<Utilization> Busy() override { return beneath_->Busy(); }
  Result<MemoryUse> Memory() override { return beneath_->Memory(); }
  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override {
    return beneath_->SupportedClocks(domain);
  }
  Result<Hertz> Clock(ClockDomain domain) override { return beneath_->Clock(domain); }
  Status LockClock(ClockDomain domain, ClockRange range) override {
    return beneath_->LockClock(domain, range);
  }
  Status ResetClock(ClockDomain domain) override { return beneath_->ResetClock(domain); }

 private:
  const std::shared_ptr<Smi> smi_;
  const Smi::Handle handle_;
  const std::unique_ptr<Board> beneath_;
};

// The identity of a board that only the library knows.
GpuIdentity IdentityFromSmi(const Smi::Device& device);

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
