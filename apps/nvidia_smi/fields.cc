#include "apps/nvidia_smi/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "zeus/base/clock.h"
#include "zeus/base/text.h"

namespace zeus::nvidia_smi {
namespace {

using Text = std::optional<std::string>;

constexpr unsigned long long kMebibyte = 1ULL << 20;

template <class Value>
Text Print(const std::optional<Value>& value) {
  if (!value) return std::nullopt;
  return fmt::format("{}", *value);
}

Text PrintMilliwatts(const std::optional<unsigned>& value) {
  if (!value) return std::nullopt;
  return fmt::format("{:.2f}", *value / 1000.0);
}

Text PrintMebibytes(const std::optional<unsigned long long>& bytes) {
  if (!bytes) return std::nullopt;
  return fmt::format("{}", *bytes / kMebibyte);
}

Text PrintMode(const std::optional<int>& mode) {
  if (!mode) return std::nullopt;
  return *mode != 0 ? "Enabled" : "Disabled";
}

template <int kind>
Text Clock(const Gpu& gpu) {
  return Print(gpu.GetKind<unsigned>("nvmlDeviceGetClockInfo", kind));
}
template <int kind>
Text MaxClock(const Gpu& gpu) {
  return Print(gpu.GetKind<unsigned>("nvmlDeviceGetMaxClockInfo", kind));
}
template <int kind>
Text ApplicationsClock(const Gpu& gpu) {
  return Print(gpu.GetKind<unsigned>("nvmlDeviceGetApplicationsClock", kind));
}
template <int kind>
Text DefaultApplicationsClock(const Gpu& gpu) {
  return Print(gpu.GetKind<unsigned>("nvmlDeviceGetDefaultApplicationsClock", kind));
}

std::optional<nvml::MemoryInfo> Memory(const Gpu& gpu) {
  return gpu.Get<nvml::MemoryInfo>("nvmlDeviceGetMemoryInfo");
}

template <auto member>
Text MemoryOf(const Gpu& gpu) {
  const auto memory = Memory(gpu);
  return memory ? PrintMebibytes((*memory).*member) : std::nullopt;
}

template <auto member>
Text UtilizationOf(const Gpu& gpu) {
  const auto rates = gpu.Get<nvml::UtilizationRates>("nvmlDeviceGetUtilizationRates");
  return rates ? Print(std::optional((*rates).*member)) : std::nullopt;
}

Text CodecUtilization(const Gpu& gpu, const char* function) {
  unsigned percent = 0;
  unsigned period = 0;
  if (gpu.driver->Call(function, gpu.device, &percent, &period) != nvml::kSuccess)
    return std::nullopt;
  return fmt::format("{}", percent);
}

template <unsigned field_id>
Text PowerField(const Gpu& gpu) {
  nvml::FieldValue field{};
  field.field_id = field_id;
  if (gpu.driver->Call("nvmlDeviceGetFieldValues", gpu.device, 1, &field) != nvml::kSuccess ||
      field.nvml_return != nvml::kSuccess)
    return std::nullopt;
  return PrintMilliwatts(field.value.as_unsigned);
}

template <bool highest>
Text PowerConstraint(const Gpu& gpu) {
  unsigned min = 0;
  unsigned max = 0;
  if (gpu.driver->Call("nvmlDeviceGetPowerManagementLimitConstraints", gpu.device, &min, &max) !=
      nvml::kSuccess)
    return std::nullopt;
  return PrintMilliwatts(highest ? max : min);
}

// Functions that give a present and a pending mode.
template <class Mode>
Text PairOfModes(const Gpu& gpu, const char* function, bool pending) {
  Mode now{};
  Mode later{};
  if (gpu.driver->Call(function, gpu.device, &now, &later) != nvml::kSuccess) return std::nullopt;
  return PrintMode(static_cast<int>(pending ? later : now));
}

template <int kind>
Text EccErrors(const Gpu& gpu) {
  unsigned long long count = 0;
  constexpr int kSinceTheDriverWasLoaded = 0;
  if (gpu.driver->Call("nvmlDeviceGetTotalEccErrors", gpu.device, kind, kSinceTheDriverWasLoaded,
                       &count) != nvml::kSuccess)
    return std::nullopt;
  return fmt::format("{}", count);
}

template <unsigned long long bit>
Text EventReason(const Gpu& gpu) {
  const auto reasons = gpu.Get<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons");
  if (!reasons) return std::nullopt;
  return (*reasons & bit) != 0 ? "Active" : "Not Active";
}

template <auto member>
Text PciPart(const Gpu& gpu) {
  const auto pci = gpu.Get<nvml::PciInfo>("nvmlDeviceGetPciInfo_v3");
  if (!pci) return std::nullopt;
  return fmt::format("0x{:02X}", (*pci).*member);
}

constexpr GpuField kGpuFields[] = {
    {"timestamp", "", "", [](const Gpu&) -> Text { return LocalTime("%Y/%m/%d %H:%M:%S.000"); }},
    {"driver_version", "", "",
     [](const Gpu& gpu) { return gpu.driver->Text("nvmlSystemGetDriverVersion"); }},
    {"count", "", "",
     [](const Gpu& gpu) -> Text {
       unsigned count = 0;
       if (gpu.driver->Call("nvmlDeviceGetCount_v2", &count) != nvml::kSuccess) return std::nullopt;
       return fmt::format("{}", count);
     }},
    {"name", "gpu_name", "", [](const Gpu& gpu) { return gpu.Text("nvmlDeviceGetName"); }},
    {"serial", "gpu_serial", "", [](const Gpu& gpu) { return gpu.Text("nvmlDeviceGetSerial"); }},
    {"uuid", "gpu_uuid", "", [](const Gpu& gpu) { return gpu.Text("nvmlDeviceGetUUID"); }},
    {"index", "", "", [](const Gpu& gpu) -> Text { return fmt::format("{}", gpu.index); }},
    {"pci.bus_id", "gpu_bus_id", "", [](const Gpu& gpu) -> Text { return gpu.bus_id(); }},
    {"pci.domain", "", "", PciPart<&nvml::PciInfo::domain>},
    {"pci.bus", "", "", PciPart<&nvml::PciInfo::bus>},
    {"pci.device", "", "", PciPart<&nvml::PciInfo::device>},
    {"pci.device_id", "", "", PciPart<&nvml::PciInfo::pci_device_id>},
    {"pcie.link.gen.current", "pcie.link.gen.gpucurrent", "",
     [](const Gpu& gpu) {
       return Print(gpu.Get<unsigned>("nvmlDeviceGetCurrPcieLinkGeneration"));
     }},
    {"pcie.link.gen.max", "pcie.link.gen.gpumax", "",
     [](const Gpu& gpu) { return Print(gpu.Get<unsigned>("nvmlDeviceGetMaxPcieLinkGeneration")); }},
    {"pcie.link.width.current", "", "",
     [](const Gpu& gpu) { return Print(gpu.Get<unsigned>("nvmlDeviceGetCurrPcieLinkWidth")); }},
    {"pcie.link.width.max", "", "",
     [](const Gpu& gpu) { return Print(gpu.Get<unsigned>("nvmlDeviceGetMaxPcieLinkWidth")); }},
    {"display_mode", "", "",
     [](const Gpu& gpu) { return PrintMode(gpu.Get<int>("nvmlDeviceGetDisplayMode")); }},
    {"display_active", "", "",
     [](const Gpu& gpu) { return PrintMode(gpu.Get<int>("nvmlDeviceGetDisplayActive")); }},
    {"persistence_mode", "", "",
     [](const Gpu& gpu) { return PrintMode(gpu.Get<int>("nvmlDeviceGetPersistenceMode")); }},
    {"accounting.mode", "", "",
     [](const Gpu& gpu) { return PrintMode(gpu.Get<int>("nvmlDeviceGetAccountingMode")); }},
    {"vbios_version", "", "", [](const Gpu& gpu) { return gpu.Text("nvmlDeviceGetVbiosVersion"); }},
    {"compute_mode", "", "",
     [](const Gpu& gpu) -> Text {
       constexpr const char* kModes[] = {"Default", "Exclusive_Thread", "Prohibited",
                                         "Exclusive_Process"};
       const auto mode = gpu.Get<unsigned>("nvmlDeviceGetComputeMode");
       if (!mode || *mode >= std::size(kModes)) return std::nullopt;
       return kModes[*mode];
     }},
    {"compute_cap", "", "",
     [](const Gpu& gpu) -> Text {
       int major = 0;
       int minor = 0;
       if (gpu.driver->Call("nvmlDeviceGetCudaComputeCapability", gpu.device, &major, &minor) !=
           nvml::kSuccess)
         return std::nullopt;
       return fmt::format("{}.{}", major, minor);
     }},
    {"fan.speed", "", "%",
     [](const Gpu& gpu) { return Print(gpu.Get<unsigned>("nvmlDeviceGetFanSpeed")); }},
    {"pstate", "", "",
     [](const Gpu& gpu) -> Text {
       const auto state = gpu.Get<int>("nvmlDeviceGetPerformanceState");
       if (!state || *state == nvml::kPerformanceStateUnknown) return std::nullopt;
       return fmt::format("P{}", *state);
     }},
    {"clocks_throttle_reasons.active", "clocks_event_reasons.active", "",
     [](const Gpu& gpu) -> Text {
       const auto reasons =
           gpu.Get<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons");
       if (!reasons) return std::nullopt;
       return fmt::format("0x{:016X}", *reasons);
     }},
    {"clocks_throttle_reasons.gpu_idle", "clocks_event_reasons.gpu_idle", "",
     EventReason<nvml::kReasonIdle>},
    {"clocks_throttle_reasons.applications_clocks_setting",
     "clocks_event_reasons.applications_clocks_setting", "",
     EventReason<nvml::kReasonApplicationsClocks>},
    {"clocks_throttle_reasons.sw_power_cap", "clocks_event_reasons.sw_power_cap", "",
     EventReason<nvml::kReasonSoftwarePowerCap>},
    {"clocks_throttle_reasons.hw_slowdown", "clocks_event_reasons.hw_slowdown", "",
     EventReason<nvml::kReasonHardwareSlowdown>},
    {"clocks_throttle_reasons.sw_thermal_slowdown", "clocks_event_reasons.sw_thermal_slowdown", "",
     EventReason<nvml::kReasonSoftwareThermal>},
    {"memory.total", "", "MiB", MemoryOf<&nvml::MemoryInfo::total>},
    {"memory.reserved", "", "MiB", [](const Gpu&) -> Text { return "0"; }},
    {"memory.used", "", "MiB", MemoryOf<&nvml::MemoryInfo::used>},
    {"memory.free", "", "MiB", MemoryOf<&nvml::MemoryInfo::free>},
    {"utilization.gpu", "", "%", UtilizationOf<&nvml::UtilizationRates::gpu>},
    {"utilization.memory", "", "%", UtilizationOf<&nvml::UtilizationRates::memory>},
    {"utilization.encoder", "", "%",
     [](const Gpu& gpu) { return CodecUtilization(gpu, "nvmlDeviceGetEncoderUtilization"); }},
    {"utilization.decoder", "", "%",
     [](const Gpu& gpu) { return CodecUtilization(gpu, "nvmlDeviceGetDecoderUtilization"); }},
    {"ecc.mode.current", "", "",
     [](const Gpu& gpu) { return PairOfModes<int>(gpu, "nvmlDeviceGetEccMode", false); }},
    {"ecc.mode.pending", "", "",
     [](const Gpu& gpu) { return PairOfModes<int>(gpu, "nvmlDeviceGetEccMode", true); }},
    {"ecc.errors.corrected.volatile.total", "", "", EccErrors<0>},
    {"ecc.errors.uncorrected.volatile.total", "", "", EccErrors<1>},
    {"temperature.gpu", "", "",
     [](const Gpu& gpu) {
       return Print(gpu.GetKind<unsigned>("nvmlDeviceGetTemperature", nvml::kSensorGpu));
     }},
    {"temperature.memory", "", "", [](const Gpu&) -> Text { return std::nullopt; }},
    {"power.management", "", "",
     [](const Gpu& gpu) { return PrintMode(gpu.Get<int>("nvmlDeviceGetPowerManagementMode")); }},
    {"power.draw", "", "W",
     [](const Gpu& gpu) { return PrintMilliwatts(gpu.Get<unsigned>("nvmlDeviceGetPowerUsage")); }},
    {"power.draw.average", "", "W", PowerField<nvml::kFieldPowerAverage>},
    {"power.draw.instant", "", "W", PowerField<nvml::kFieldPowerInstant>},
    {"power.limit", "", "W",
     [](const Gpu& gpu) {
       return PrintMilliwatts(gpu.Get<unsigned>("nvmlDeviceGetPowerManagementLimit"));
     }},
    {"enforced.power.limit", "", "W",
     [](const Gpu& gpu) {
       return PrintMilliwatts(gpu.Get<unsigned>("nvmlDeviceGetEnforcedPowerLimit"));
     }},
    {"power.default_limit", "", "W",
     [](const Gpu& gpu) {
       return PrintMilliwatts(gpu.Get<unsigned>("nvmlDeviceGetPowerManagementDefaultLimit"));
     }},
    {"power.min_limit", "", "W", PowerConstraint<false>},
    {"power.max_limit", "", "W", PowerConstraint<true>},
    {"clocks.current.graphics", "clocks.gr", "MHz", Clock<nvml::kClockGraphics>},
    {"clocks.current.sm", "clocks.sm", "MHz", Clock<nvml::kClockSm>},
    {"clocks.current.memory", "clocks.mem", "MHz", Clock<nvml::kClockMemory>},
    {"clocks.current.video", "clocks.video", "MHz", Clock<nvml::kClockVideo>},
    {"clocks.applications.graphics", "clocks.applications.gr", "MHz",
     ApplicationsClock<nvml::kClockGraphics>},
    {"clocks.applications.memory", "clocks.applications.mem", "MHz",
     ApplicationsClock<nvml::kClockMemory>},
    {"clocks.default_applications.graphics", "clocks.default_applications.gr", "MHz",
     DefaultApplicationsClock<nvml::kClockGraphics>},
    {"clocks.default_applications.memory", "clocks.default_applications.mem", "MHz",
     DefaultApplicationsClock<nvml::kClockMemory>},
    {"clocks.max.graphics", "clocks.max.gr", "MHz", MaxClock<nvml::kClockGraphics>},
    {"clocks.max.sm", "", "MHz", MaxClock<nvml::kClockSm>},
    {"clocks.max.memory", "clocks.max.mem", "MHz", MaxClock<nvml::kClockMemory>},
    {"mig.mode.current", "", "",
     [](const Gpu& gpu) { return PairOfModes<unsigned>(gpu, "nvmlDeviceGetMigMode", false); }},
    {"mig.mode.pending", "", "",
     [](const Gpu& gpu) { return PairOfModes<unsigned>(gpu, "nvmlDeviceGetMigMode", true); }},
};

constexpr ProcessField kProcessFields[] = {
    {"timestamp", "", "",
     [](const ComputeProcess&) -> Text { return LocalTime("%Y/%m/%d %H:%M:%S.000"); }},
    {"gpu_name", "", "",
     [](const ComputeProcess& process) { return process.gpu.Text("nvmlDeviceGetName"); }},
    {"gpu_bus_id", "", "",
     [](const ComputeProcess& process) -> Text { return process.gpu.bus_id(); }},
    {"gpu_serial", "", "",
     [](const ComputeProcess& process) { return process.gpu.Text("nvmlDeviceGetSerial"); }},
    {"gpu_uuid", "", "",
     [](const ComputeProcess& process) { return process.gpu.Text("nvmlDeviceGetUUID"); }},
    {"pid", "", "",
     [](const ComputeProcess& process) -> Text { return fmt::format("{}", process.info.pid); }},
    {"process_name", "name", "",
     [](const ComputeProcess& process) {
       return process.gpu.driver->Text("nvmlSystemGetProcessName", process.info.pid);
     }},
    {"used_gpu_memory", "used_memory", "MiB",
     [](const ComputeProcess& process) { return PrintMebibytes(process.info.used_gpu_memory); }},
};

template <class Subject>
Result<std::vector<const Field<Subject>*>> Choose(std::span<const Field<Subject>> fields,
                                                  std::string_view names) {
  std::vector<const Field<Subject>*> chosen;
  for (const std::string_view name : SplitAtCommas(names)) {
    const Field<Subject>* found = nullptr;
    for (const auto& field : fields)
      if (field.name == name || (!field.alias.empty() && field.alias == name)) found = &field;
    if (found == nullptr)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("Field \"{}\" is not a valid field to query.", name)};
    chosen.push_back(found);
  }
  return chosen;
}

}  // namespace

std::span<const GpuField> GpuFields() { return kGpuFields; }
std::span<const ProcessField> ProcessFields() { return kProcessFields; }

Result<std::vector<const GpuField*>> ChooseGpuFields(std::string_view names) {
  return Choose(GpuFields(), names);
}

Result<std::vector<const ProcessField*>> ChooseProcessFields(std::string_view names) {
  return Choose(ProcessFields(), names);
}

std::string ReadField(const Gpu& gpu, std::string_view name, std::string_view missing) {
  const auto fields = ChooseGpuFields(name);
  const Text value = fields.ok() ? fields.value().front()->read(gpu) : std::nullopt;
  if (!value) return std::string(missing);
  const std::string_view unit = fields.value().front()->unit;
  return unit.empty() ? *value : fmt::format("{} {}", *value, unit);
}

std::vector<ComputeProcess> ComputeProcesses(const Gpu& gpu) {
  constexpr const char* kFunction = "nvmlDeviceGetComputeRunningProcesses_v3";
  std::vector<nvml::ProcessInfo> infos(16);
  auto count = static_cast<unsigned>(infos.size());
  Return code = gpu.driver->Call(kFunction, gpu.device, &count, infos.data());
  // More may have started since the driver said how many there are.
  for (int attempt = 0; code == nvml::kInsufficientSize && attempt < 8; ++attempt) {
    infos.resize(count + 16);
    count = static_cast<unsigned>(infos.size());
    code = gpu.driver->Call(kFunction, gpu.device, &count, infos.data());
  }
  std::vector<ComputeProcess> processes;
  for (unsigned i = 0; code == nvml::kSuccess && i < count; ++i)
    processes.push_back({.gpu = gpu, .info = infos[i]});
  return processes;
}

std::string LocalTime(const char* format) {
  const std::time_t now = std::chrono::system_clock::to_time_t(
      std::chrono::system_clock::time_point(SystemClock().WallNow().time_since_epoch()));
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), format, &parts)};
}

}  // namespace zeus::nvidia_smi
