#include "zeus/device/nvml/nvml_session.h"

#include <string_view>

#include "zeus/base/fork.h"
#include "zeus/device/nvml/nvml_error.h"
#include "zeus/device/shared_library.h"

namespace zeus::nvml {

namespace {

void ResolveIdentity(SharedLibrary& library, NvmlApi& api) {
  library.FindRequired(api.init, {"nvmlInit_v2", "nvmlInit"});
  library.FindRequired(api.shutdown, {"nvmlShutdown"});
  library.FindRequired(api.get_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  library.FindRequired(api.get_handle_by_index,
                       {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  library.FindRequired(api.get_uuid, {"nvmlDeviceGetUUID"});
  library.FindOptional(api.error_string, {"nvmlErrorString"});
  library.FindOptional(api.get_driver_version, {"nvmlSystemGetDriverVersion"});
  library.FindOptional(api.get_handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  library.FindOptional(api.get_handle_by_pci,
                       {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"});
  library.FindOptional(api.get_name, {"nvmlDeviceGetName"});
  // The older structs are shorter but keep domain, bus and device in the same place.
  library.FindOptional(api.get_pci_info, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",
                                          "nvmlDeviceGetPciInfo"});
  library.FindOptional(api.get_architecture, {"nvmlDeviceGetArchitecture"});
  library.FindOptional(api.get_mig_mode, {"nvmlDeviceGetMigMode"});
  library.FindOptional(api.get_max_mig_count, {"nvmlDeviceGetMaxMigDeviceCount"});
  library.FindOptional(api.get_mig_handle, {"nvmlDeviceGetMigDeviceHandleByIndex"});
}

void ResolveSensors(SharedLibrary& library, NvmlApi& api) {
  library.FindOptional(api.get_field_values, {"nvmlDeviceGetFieldValues"});
  library.FindOptional(api.get_total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  library.FindOptional(api.get_power_usage, {"nvmlDeviceGetPowerUsage"});
  library.FindOptional(api.get_temperature_v, {"nvmlDeviceGetTemperatureV"});
  library.FindOptional(api.get_temperature, {"nvmlDeviceGetTemperature"});
  library.FindOptional(api.get_utilization, {"nvmlDeviceGetUtilizationRates"});
  library.FindOptional(api.get_memory_info_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  library.FindOptional(api.get_memory_info, {"nvmlDeviceGetMemoryInfo"});
  library.FindOptional(api.get_clock_info, {"nvmlDeviceGetClockInfo"});
  library.FindOptional(api.get_clocks_event_reasons, {"nvmlDeviceGetCurrentClocksEventReasons",
                                                      "nvmlDeviceGetCurrentClocksThrottleReasons"});
}

void ResolveKnobs(SharedLibrary& library, NvmlApi& api) {
  library.FindOptional(api.get_power_limit, {"nvmlDeviceGetPowerManagementLimit"});
  library.FindOptional(api.get_enforced_power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  library.FindOptional(api.get_default_power_limit, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  library.FindOptional(api.get_power_limit_constraints,
                       {"nvmlDeviceGetPowerManagementLimitConstraints"});
  library.FindOptional(api.set_power_limit, {"nvmlDeviceSetPowerManagementLimit"});
  library.FindOptional(api.get_memory_clocks, {"nvmlDeviceGetSupportedMemoryClocks"});
  library.FindOptional(api.get_graphics_clocks, {"nvmlDeviceGetSupportedGraphicsClocks"});
  library.FindOptional(api.set_graphics_clock_lock, {"nvmlDeviceSetGpuLockedClocks"});
  library.FindOptional(api.reset_graphics_clock_lock, {"nvmlDeviceResetGpuLockedClocks"});
  library.FindOptional(api.set_memory_clock_lock, {"nvmlDeviceSetMemoryLockedClocks"});
  library.FindOptional(api.reset_memory_clock_lock, {"nvmlDeviceResetMemoryLockedClocks"});
  library.FindOptional(api.get_persistence, {"nvmlDeviceGetPersistenceMode"});
  library.FindOptional(api.set_persistence, {"nvmlDeviceSetPersistenceMode"});
}

}  // namespace

Result<NvmlApi> LoadNvml(const std::optional<std::string>& path) {
  ZEUS_TRY(SharedLibrary library,
           SharedLibrary::Open(path, {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}));
  NvmlApi api;
  ResolveIdentity(library, api);
  ResolveSensors(library, api);
  ResolveKnobs(library, api);
  ZEUS_RETURN_IF_ERROR(library.CheckComplete("NVML"));
  return api;
}

namespace {

Status Initialise(const NvmlApi& api, std::string_view doing) {
  const Return code = Call(api.init);
  if (code == kSuccess) return Ok();
  const char* const said = api.error_string == nullptr ? nullptr : api.error_string(code);
  return InitError(code, doing, said == nullptr ? "" : said);
}

}  // namespace

Result<std::shared_ptr<NvmlSession>> NvmlSession::Open(const NvmlApi& api) {
  WatchForks();
  ZEUS_RETURN_IF_ERROR(Initialise(api, "initialise NVML"));
  std::shared_ptr<NvmlSession> session(new NvmlSession(api));
  session->generation_ = ForkGeneration();
  return session;
}

NvmlSession::~NvmlSession() {
  // In a child that never used NVML there is nothing to shut down.
  if (generation_ == ForkGeneration()) Call(api_.shutdown);
}

Status NvmlSession::Enter() {
  const unsigned now = ForkGeneration();
  unsigned initialised = generation_.load(std::memory_order_acquire);
  if (initialised == now) return Ok();
  ZEUS_RETURN_IF_ERROR(Initialise(api_, "initialise NVML after a fork"));
  // NVML counts its users: of two threads that got here together, the second gives its count back.
  if (!generation_.compare_exchange_strong(initialised, now)) Call(api_.shutdown);
  return Ok();
}

}  // namespace zeus::nvml
