#pragma once

#include "zeus/device/nvml/nvml_abi.h"

namespace zeus::nvml {

// The NVML functions we use, as a table: filled by dlsym in production (nvml_session.h), by
// captureless lambdas in tests. A null entry is a function that this driver does not have; go
// through Call(), which answers kFunctionNotFound for it. Comments give NVML's name.
struct NvmlApi {
  // Without these nothing works: LoadNvml() refuses a library that lacks one.
  Return (*init)() = nullptr;                                  // nvmlInit_v2
  Return (*shutdown)() = nullptr;                              // nvmlShutdown
  Return (*get_count)(unsigned*) = nullptr;                    // nvmlDeviceGetCount_v2
  Return (*get_handle_by_index)(unsigned, Device*) = nullptr;  // nvmlDeviceGetHandleByIndex_v2
  Return (*get_uuid)(Device, char*, unsigned) = nullptr;       // nvmlDeviceGetUUID

  const char* (*error_string)(Return) = nullptr;  // nvmlErrorString

  // Identity.
  Return (*get_driver_version)(char*, unsigned) = nullptr;       // nvmlSystemGetDriverVersion
  Return (*get_handle_by_uuid)(const char*, Device*) = nullptr;  // nvmlDeviceGetHandleByUUID
  Return (*get_handle_by_pci)(const char*, Device*) = nullptr;   // nvmlDeviceGetHandleByPciBusId_v2
  Return (*get_name)(Device, char*, unsigned) = nullptr;         // nvmlDeviceGetName
  Return (*get_pci_info)(Device, PciInfo*) = nullptr;            // nvmlDeviceGetPciInfo_v3
  Return (*get_architecture)(Device, unsigned*) = nullptr;       // nvmlDeviceGetArchitecture
  // nvmlDeviceGetMigMode: current, after the next reset
  Return (*get_mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  Return (*get_max_mig_count)(Device, unsigned*) = nullptr;  // nvmlDeviceGetMaxMigDeviceCount
  Return (*get_mig_handle)(Device, unsigned,
                           Device*) = nullptr;  // nvmlDeviceGetMigDeviceHandleByIndex

  // Sensors. Milliwatts, millijoules, megahertz.
  Return (*get_field_values)(Device, int, FieldValue*) = nullptr;  // nvmlDeviceGetFieldValues
  Return (*get_total_energy)(Device,
                             unsigned long long*) = nullptr;  // nvmlDeviceGetTotalEnergyConsumption
  Return (*get_power_usage)(Device, unsigned*) = nullptr;     // nvmlDeviceGetPowerUsage
  Return (*get_temperature_v)(Device, TemperatureV1*) = nullptr;   // nvmlDeviceGetTemperatureV
  Return (*get_temperature)(Device, int, unsigned*) = nullptr;     // nvmlDeviceGetTemperature
  Return (*get_utilization)(Device, UtilizationRates*) = nullptr;  // nvmlDeviceGetUtilizationRates
  Return (*get_memory_info_v2)(Device, MemoryInfoV2*) = nullptr;   // nvmlDeviceGetMemoryInfo_v2
  Return (*get_memory_info)(Device, MemoryInfo*) = nullptr;        // nvmlDeviceGetMemoryInfo
  Return (*get_clock_info)(Device, int, unsigned*) = nullptr;      // nvmlDeviceGetClockInfo
  // nvmlDeviceGetProcessUtilization: samples, their number, those after this time in microseconds
  Return (*get_process_utilization)(Device, ProcessUtilizationSample*, unsigned*,
                                    unsigned long long) = nullptr;
  // nvmlDeviceGetCurrentClocksEventReasons, before driver 535 ...ThrottleReasons
  Return (*get_clocks_event_reasons)(Device, unsigned long long*) = nullptr;

  // Knobs and their limits.
  Return (*get_power_limit)(Device, unsigned*) = nullptr;  // nvmlDeviceGetPowerManagementLimit
  Return (*get_enforced_power_limit)(Device,
                                     unsigned*) = nullptr;  // nvmlDeviceGetEnforcedPowerLimit
  Return (*get_default_power_limit)(Device, unsigned*) =
      nullptr;  // nvmlDeviceGetPowerManagementDefaultLimit
  // nvmlDeviceGetPowerManagementLimitConstraints: minimum, maximum
  Return (*get_power_limit_constraints)(Device, unsigned*, unsigned*) = nullptr;
  Return (*set_power_limit)(Device, unsigned) = nullptr;  // nvmlDeviceSetPowerManagementLimit
  Return (*get_memory_clocks)(Device, unsigned*,
                              unsigned*) = nullptr;  // nvmlDeviceGetSupportedMemoryClocks
  // nvmlDeviceGetSupportedGraphicsClocks
  Return (*get_graphics_clocks)(Device, unsigned, unsigned*, unsigned*) = nullptr;
  Return (*set_graphics_clock_lock)(Device, unsigned,
                                    unsigned) = nullptr;  // nvmlDeviceSetGpuLockedClocks
  Return (*reset_graphics_clock_lock)(Device) = nullptr;  // nvmlDeviceResetGpuLockedClocks
  Return (*set_memory_clock_lock)(Device, unsigned,
                                  unsigned) = nullptr;  // nvmlDeviceSetMemoryLockedClocks
  Return (*reset_memory_clock_lock)(Device) = nullptr;  // nvmlDeviceResetMemoryLockedClocks
  Return (*get_persistence)(Device, int*) = nullptr;    // nvmlDeviceGetPersistenceMode
  Return (*set_persistence)(Device, int) = nullptr;     // nvmlDeviceSetPersistenceMode
};

template <class... Parameters, class... Arguments>
Return Call(Return (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? kFunctionNotFound : function(arguments...);
}

}  // namespace zeus::nvml
