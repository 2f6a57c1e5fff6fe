#include "zeus/device/nvml/nvml_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>

#include "zeus/device/nvml/nvml_fields.h"

namespace zeus::nvml {
namespace {

// A buffer that NVML filled; it need not be terminated when the driver misbehaves.
template <std::size_t kSize>
std::string Text(const std::array<char, kSize>& buffer) {
  return {buffer.data(), ::strnlen(buffer.data(), kSize)};
}

template <std::size_t kSize, class... Parameters, class... Arguments>
Return ReadText(std::string* text, Return (*function)(Parameters...), Arguments... arguments) {
  std::array<char, kSize> buffer{};
  const Return code =
      Call(function, arguments..., buffer.data(), static_cast<unsigned>(buffer.size()));
  if (code == kSuccess) *text = Text(buffer);
  return code;
}

}  // namespace

Result<std::string> ReadUuid(const Target& target) {
  std::string uuid;
  const Return code = ReadText<kUuidBufferSize>(&uuid, target.api.get_uuid, target.device);
  if (code != kSuccess) return NvmlError(code, "read the UUID of a GPU");
  return uuid;
}

Result<GpuIdentity> ReadIdentity(const Target& target) {
  GpuIdentity identity{
      .uuid = "", .pci_address = "", .model = "", .driver = "", .vendor = Vendor::kNvidia};
  ZEUS_TRY(identity.uuid, ReadUuid(target));

  PciInfo pci{};
  const Return pci_code = Call(target.api.get_pci_info, target.device, &pci);
  if (DeviceIsGone(pci_code)) return NvmlError(pci_code, identity.uuid);
  // Its own text has an eight-digit domain and upper case; the kernel writes four and lower.
  if (pci_code == kSuccess)
    identity.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);

  const Return name_code =
      ReadText<kNameBufferSize>(&identity.model, target.api.get_name, target.device);
  if (DeviceIsGone(name_code)) return NvmlError(name_code, identity.uuid);
  if (name_code != kSuccess || identity.model.empty()) identity.model = "NVIDIA GPU";

  (void)ReadText<kVersionBufferSize>(&identity.driver, target.api.get_driver_version);
  return identity;
}

namespace {

Return ReadClock(const Target& target, int type, Hertz* clock) {
  unsigned megahertz = 0;
  const Return code = Call(target.api.get_clock_info, target.device, type, &megahertz);
  if (code == kSuccess) *clock = Hertz::FromMega(megahertz);
  return code;
}

double Share(unsigned percent) { return std::min(percent, 100U) / 100.0; }

Return ReadBounds(const Target& target, unsigned scope, LimitBounds* bounds) {
  struct Wanted {
    unsigned field;
    unsigned* into;
  };
  const std::array wanted = {Wanted{kFieldPowerMinLimit, &bounds->min},
                             Wanted{kFieldPowerMaxLimit, &bounds->max},
                             Wanted{kFieldPowerDefaultLimit, &bounds->default_limit}};
  for (const auto& [id, into] : wanted) {
    FieldValue field{};
    const Return code = ReadField(target, id, scope, &field);
    if (code != kSuccess) return code;
    const auto value = DecodeValue(field);
    if (!value.ok() || value.value() > std::numeric_limits<unsigned>::max()) return kUnknown;
    *into = static_cast<unsigned>(value.value());
  }
  return bounds->max == 0 ? kNotSupported : kSuccess;
}

}  // namespace

Return ReadTemperatureV(const Target& target, Celsius* temperature) {
  TemperatureV1 reading{
      .version = StructVersion<TemperatureV1>(1), .sensor_type = kSensorGpu, .temperature = 0};
  const Return code = Call(target.api.get_temperature_v, target.device, &reading);
  if (code == kSuccess) *temperature = Celsius(reading.temperature);
  return code;
}

Return ReadTemperature(const Target& target, Celsius* temperature) {
  unsigned degrees = 0;
  const Return code = Call(target.api.get_temperature, target.device, kSensorGpu, &degrees);
  if (code == kSuccess) *temperature = Celsius(degrees);
  return code;
}

Return ReadUtilization(const Target& target, Utilization* utilization) {
  UtilizationRates rates{};
  const Return code = Call(target.api.get_utilization, target.device, &rates);
  if (code == kSuccess) *utilization = {.compute = Share(rates.gpu), .memory = Share(rates.memory)};
  return code;
}

Return ReadMemoryV2(const Target& target, MemoryUse* memory) {
  MemoryInfoV2 info{};
  info.version = StructVersion<MemoryInfoV2>(2);
  const Return code = Call(target.api.get_memory_info_v2, target.device, &info);
  if (code == kSuccess) *memory = {.used_bytes = info.used, .total_bytes = info.total};
  return code;
}

Return ReadMemory(const Target& target, MemoryUse* memory) {
  MemoryInfo info{};
  const Return code = Call(target.api.get_memory_info, target.device, &info);
  if (code == kSuccess) *memory = {.used_bytes = info.used, .total_bytes = info.total};
  return code;
}

Return ReadGraphicsClock(const Target& target, Hertz* clock) {
  return ReadClock(target, kClockGraphics, clock);
}

Return ReadMemoryClock(const Target& target, Hertz* clock) {
  return ReadClock(target, kClockMemory, clock);
}

Return ReadThrottleReasons(const Target& target, ThrottleReasons* reasons) {
  unsigned long long bits = 0;
  const Return code = Call(target.api.get_clocks_event_reasons, target.device, &bits);
  if (code != kSuccess) return code;
  constexpr auto kPower = kReasonSoftwarePowerCap | kReasonPowerBrake;
  constexpr auto kThermal = kReasonSoftwareThermal | kReasonHardwareThermal;
  // A hardware slowdown is a thermal or a power one, and recent drivers say which beside it.
  const bool explained = (bits & (kReasonPowerBrake | kReasonHardwareThermal)) != 0;
  const auto known = kReasonIdle | kReasonApplicationsClocks | kPower | kThermal |
                     (explained ? kReasonHardwareSlowdown : 0ULL);
  *reasons = {.idle = (bits & kReasonIdle) != 0,
              .power_cap = (bits & kPower) != 0,
              .thermal = (bits & kThermal) != 0,
              .locked_clock = (bits & kReasonApplicationsClocks) != 0,
              .other = (bits & ~known) != 0};
  return kSuccess;
}

bool InMigMode(const Target& target) {
  unsigned current = 0;
  unsigned pending = 0;
  return Call(target.api.get_mig_mode, target.device, &current, &pending) == kSuccess &&
         current == kMigEnabled;
}

Return ReadGpuBounds(const Target& target, LimitBounds* bounds) {
  return ReadBounds(target, kScopeGpu, bounds);
}

Return ReadConstraints(const Target& target, LimitBounds* bounds) {
  const Return code =
      Call(target.api.get_power_limit_constraints, target.device, &bounds->min, &bounds->max);
  if (code != kSuccess) return code;
  return Call(target.api.get_default_power_limit, target.device, &bounds->default_limit);
}

Return ReadModuleBounds(const Target& target, LimitBounds* bounds) {
  return ReadBounds(target, kScopeModule, bounds);
}

}  // namespace zeus::nvml
