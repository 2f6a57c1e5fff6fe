#include "zeus/device/nvml/nvml_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "zeus/base/process.h"
#include "zeus/base/shared_library.h"
#include "zeus/base/text.h"

namespace zeus::nvml {
namespace {

struct Meaning {
  Return code;
  ErrorCode error;
  std::string_view problem;
  std::string_view remedy;  // Empty where the user can do nothing.
};

constexpr std::array kMeanings = {
    Meaning{kUninitialized, ErrorCode::kUnavailable, "NVML is not initialised in this process", ""},
    Meaning{kInvalidArgument, ErrorCode::kInvalidArgument, "the driver rejected the argument", ""},
    Meaning{kNotSupported, ErrorCode::kNotSupported, "not supported by this GPU or its mode", ""},
    Meaning{kNoPermission, ErrorCode::kPermissionDenied, "the driver refused", kPrivilegeNeeded},
    Meaning{kAlreadyInitialized, ErrorCode::kInternal, "NVML was initialised twice", ""},
    Meaning{kNotFound, ErrorCode::kNotFound, "the driver knows no such thing", ""},
    Meaning{kInsufficientSize, ErrorCode::kInternal, "the driver has more data than expected", ""},
    Meaning{kInsufficientPower, ErrorCode::kUnavailable, "the GPU lacks external power",
            "check its power cables"},
    Meaning{kDriverNotLoaded, ErrorCode::kUnavailable, "the NVIDIA kernel driver is not loaded",
            "run modprobe nvidia"},
    Meaning{kTimeout, ErrorCode::kUnavailable, "the driver did not answer in time", "try again"},
    Meaning{kIrqIssue, ErrorCode::kUnavailable, "the GPU's interrupts do not arrive",
            "see dmesg, then reboot"},
    Meaning{kLibraryNotFound, ErrorCode::kNotSupported,
            "the driver lacks a library that NVML needs", "reinstall the NVIDIA driver"},
    Meaning{kFunctionNotFound, ErrorCode::kNotSupported, "this driver does not know the function",
            "a newer NVIDIA driver may"},
    Meaning{kCorruptedInforom, ErrorCode::kUnavailable, "the GPU's information ROM is corrupted",
            "have the board serviced"},
    Meaning{kGpuIsLost, ErrorCode::kUnavailable, "the GPU fell off the bus",
            "see dmesg, then reset the GPU or reboot"},
    Meaning{kResetRequired, ErrorCode::kUnavailable, "the GPU must be reset before it can be used",
            "run nvidia-smi --gpu-reset"},
    Meaning{kOperatingSystem, ErrorCode::kPermissionDenied,
            "the operating system blocks the GPU (cgroup or container)",
            "give the process access to /dev/nvidia*"},
    Meaning{kLibRmVersionMismatch, ErrorCode::kUnavailable,
            "the NVML library and the kernel driver have different versions",
            "reboot, or reload the kernel driver"},
    Meaning{kInUse, ErrorCode::kUnavailable, "the GPU is in use by another client", "try again"},
    Meaning{kMemory, ErrorCode::kUnavailable, "the driver is out of memory", ""},
    Meaning{kNoData, ErrorCode::kUnavailable, "the driver has no data yet", "try again"},
    Meaning{kVgpuEccNotSupported, ErrorCode::kNotSupported,
            "not supported by a virtual GPU while ECC is on", ""},
    Meaning{kInsufficientResources, ErrorCode::kUnavailable, "the driver is out of resources", ""},
    Meaning{kFreqNotSupported, ErrorCode::kInvalidArgument,
            "the GPU does not support this frequency", ""},
    Meaning{kArgumentVersionMismatch, ErrorCode::kNotSupported,
            "this driver knows only another version of the call", "a newer NVIDIA driver may"},
    Meaning{kDeprecated, ErrorCode::kNotSupported, "this driver no longer has the function", ""},
    Meaning{kNotReady, ErrorCode::kUnavailable, "the GPU is not ready", "try again"},
    Meaning{kGpuNotFound, ErrorCode::kNotFound, "the driver finds no GPU", ""},
    Meaning{kInvalidState, ErrorCode::kUnavailable, "the GPU's present state forbids it", ""},
    Meaning{kResetTypeNotSupported, ErrorCode::kNotSupported,
            "the GPU does not support this kind of reset", ""},
    Meaning{kUnknown, ErrorCode::kUnavailable, "the driver failed for an unknown reason",
            "see dmesg"},
};

}  // namespace

Error NvmlError(Return code, std::string_view doing, Privilege privilege) {
  if (code == kNoPermission && privilege == Privilege::kRoot)
    return {ErrorCode::kPermissionDenied, fmt::format("{}: {}", doing, RefusalAdvice(privilege))};
  const auto* const meaning = std::ranges::find(kMeanings, code, &Meaning::code);
  if (meaning == kMeanings.end()) {
    return {ErrorCode::kUnavailable,
            fmt::format("{}: the driver failed with the unknown code {}", doing, code)};
  }
  return {meaning->error, fmt::format("{}: {}{}{}", doing, meaning->problem,
                                      meaning->remedy.empty() ? "" : ": ", meaning->remedy)};
}

Error InitError(Return code, std::string_view doing, std::string_view said) {
  const bool says_more =
      code == kDriverNotLoaded && !said.empty() && LowerCase(said) != "driver not loaded";
  if (says_more) return {ErrorCode::kUnavailable, fmt::format("{}: {}", doing, Printable(said))};
  Error error = NvmlError(code, doing);
  const bool unknown = std::ranges::find(kMeanings, code, &Meaning::code) == kMeanings.end();
  if (unknown && !said.empty()) error.message += fmt::format(" ({})", Printable(said));
  return error;
}

ProblemAndRemedy SplitRemedy(const Error& error) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.remedy.empty() || !error.message.ends_with(meaning.remedy)) continue;
    const std::size_t problem_size = error.message.size() - meaning.remedy.size() - 2;
    return {error.message.substr(0, problem_size), std::string(meaning.remedy)};
  }
  return {error.message, ""};
}

bool DeviceIsGone(Return code) {
  return code == kGpuIsLost || code == kResetRequired || code == kUninitialized ||
         code == kDriverNotLoaded;
}

bool NeverWorks(Return code) {
  constexpr std::array kNever = {kInvalidArgument,         kNotSupported,   kNotFound,
                                 kFunctionNotFound,        kDeprecated,     kVgpuEccNotSupported,
                                 kArgumentVersionMismatch, kLibraryNotFound};
  return std::ranges::find(kNever, code) != kNever.end();
}

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
  library.FindOptional(api.get_process_utilization, {"nvmlDeviceGetProcessUtilization"});
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
  ZEUS_RETURN_IF_ERROR(Initialise(api_, "initialise NVML again"));
  // NVML counts its users: of two threads that got here together, the second gives its count back.
  if (!generation_.compare_exchange_strong(initialised, now)) Call(api_.shutdown);
  return Ok();
}

// A use counts before it looks whether NVML is being closed, and who closes it says so before he
// looks at the count: one of the two sees the other.
NvmlSession::Use NvmlSession::Begin() {
  while (true) {
    ++uses_;
    Use use(*this);
    if (!IsClosing()) return use;
    use = Use();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !IsClosing(); });
  }
}

void NvmlSession::EndUse() {
  --uses_;
  if (!IsClosing()) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

Status NvmlSession::Close(Seconds patience) {
  const std::lock_guard one(one_closes_);
  closing_in_ = ForkGeneration();
  std::unique_lock lock(mutex_);
  const bool unused = changed_.wait_for(lock, patience, [this] { return uses_ == 0; });
  if (unused && generation_ == ForkGeneration()) {
    Call(api_.shutdown);
    generation_ = kNowhere;
    ++closings_;
  }
  closing_in_ = kNowhere;
  changed_.notify_all();
  if (unused) return Ok();
  return Error{ErrorCode::kUnavailable,
               "NVML cannot be closed while a call to one of its GPUs does not return: try again"};
}

}  // namespace zeus::nvml
