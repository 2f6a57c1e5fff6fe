#include "zeus/device/nvml/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace zeus::nvml {
namespace {

constexpr std::array kUsualPlaces = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"};

// Fills entries of the table and remembers which required ones were missing.
class Resolver {
 public:
  explicit Resolver(void* library) : library_(library) {}

  template <class Function>
  void Optional(Function*& entry, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      entry = reinterpret_cast<Function*>(::dlsym(library_, name));
      if (entry != nullptr) return;
    }
  }

  template <class Function>
  void Required(Function*& entry, std::initializer_list<const char*> names) {
    Optional(entry, names);
    if (entry == nullptr) missing_.emplace_back(*names.begin());
  }

  const std::vector<std::string>& missing() const { return missing_; }

 private:
  void* library_;
  std::vector<std::string> missing_;
};

void ResolveIdentity(Resolver& find, NvmlApi& api) {
  find.Required(api.init, {"nvmlInit_v2", "nvmlInit"});
  find.Required(api.shutdown, {"nvmlShutdown"});
  find.Required(api.get_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  find.Required(api.get_handle_by_index,
                {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find.Required(api.get_uuid, {"nvmlDeviceGetUUID"});
  find.Optional(api.get_driver_version, {"nvmlSystemGetDriverVersion"});
  find.Optional(api.get_handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  find.Optional(api.get_handle_by_pci,
                {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"});
  find.Optional(api.get_name, {"nvmlDeviceGetName"});
  // The older structs are shorter but keep domain, bus and device in the same place.
  find.Optional(api.get_pci_info,
                {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  find.Optional(api.get_architecture, {"nvmlDeviceGetArchitecture"});
  find.Optional(api.get_max_mig_count, {"nvmlDeviceGetMaxMigDeviceCount"});
  find.Optional(api.get_mig_handle, {"nvmlDeviceGetMigDeviceHandleByIndex"});
}

void ResolveSensors(Resolver& find, NvmlApi& api) {
  find.Optional(api.get_field_values, {"nvmlDeviceGetFieldValues"});
  find.Optional(api.get_total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  find.Optional(api.get_power_usage, {"nvmlDeviceGetPowerUsage"});
  find.Optional(api.get_temperature_v, {"nvmlDeviceGetTemperatureV"});
  find.Optional(api.get_temperature, {"nvmlDeviceGetTemperature"});
  find.Optional(api.get_utilization, {"nvmlDeviceGetUtilizationRates"});
  find.Optional(api.get_memory_info_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find.Optional(api.get_memory_info, {"nvmlDeviceGetMemoryInfo"});
  find.Optional(api.get_clock_info, {"nvmlDeviceGetClockInfo"});
  find.Optional(api.get_clocks_event_reasons, {"nvmlDeviceGetCurrentClocksEventReasons",
                                               "nvmlDeviceGetCurrentClocksThrottleReasons"});
}

void ResolveKnobs(Resolver& find, NvmlApi& api) {
  find.Optional(api.get_power_limit, {"nvmlDeviceGetPowerManagementLimit"});
  find.Optional(api.get_enforced_power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  find.Optional(api.get_default_power_limit, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  find.Optional(api.get_power_limit_constraints, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  find.Optional(api.set_power_limit, {"nvmlDeviceSetPowerManagementLimit"});
  find.Optional(api.get_memory_clocks, {"nvmlDeviceGetSupportedMemoryClocks"});
  find.Optional(api.get_graphics_clocks, {"nvmlDeviceGetSupportedGraphicsClocks"});
  find.Optional(api.set_graphics_clock_lock, {"nvmlDeviceSetGpuLockedClocks"});
  find.Optional(api.reset_graphics_clock_lock, {"nvmlDeviceResetGpuLockedClocks"});
  find.Optional(api.set_memory_clock_lock, {"nvmlDeviceSetMemoryLockedClocks"});
  find.Optional(api.reset_memory_clock_lock, {"nvmlDeviceResetMemoryLockedClocks"});
  find.Optional(api.get_persistence, {"nvmlDeviceGetPersistenceMode"});
  find.Optional(api.set_persistence, {"nvmlDeviceSetPersistenceMode"});
}

Result<NvmlApi> ResolveAll(void* library, const std::string& path) {
  NvmlApi api;
  Resolver find(library);
  ResolveIdentity(find, api);
  ResolveSensors(find, api);
  ResolveKnobs(find, api);
  if (!find.missing().empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not NVML: it lacks {}", path, fmt::join(find.missing(), ", "))};
  }
  return api;
}

// dlopen() says what is wrong only in a sentence; whether a file is there we can see ourselves.
Error LoadError(const std::string& path) {
  const char* const said = ::dlerror();
  std::string_view reason = said == nullptr ? "unknown reason" : said;
  if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);
  std::error_code ignored;
  const bool missing = path.find('/') == std::string::npos
                           ? reason.starts_with("cannot open shared object file")
                           : !std::filesystem::exists(path, ignored);
  if (missing) return {ErrorCode::kNotFound, path + " not found"};
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} cannot be loaded as a library: {}", path, reason)};
}

}  // namespace

Result<NvmlApi> LoadNvml(const std::optional<std::string>& path) {
  if (path) {
    void* library = ::dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return LoadError(*path);
    return ResolveAll(library, *path);
  }
  for (const char* place : kUsualPlaces) {
    if (void* library = ::dlopen(place, RTLD_NOW | RTLD_LOCAL)) return ResolveAll(library, place);
    Error error = LoadError(place);
    if (error.code != ErrorCode::kNotFound) return error;
  }
  return Error{ErrorCode::kNotFound, fmt::format("{} not found", kUsualPlaces.front())};
}

}  // namespace zeus::nvml
