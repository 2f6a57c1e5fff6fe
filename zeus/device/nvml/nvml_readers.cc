#include "zeus/device/nvml/nvml_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace zeus::nvml {
namespace {

constexpr std::array<const char*, kChannelCount> kChannelNames = {
    "energy",       "instant power",         "average power",
    "memory power", "requested power limit", "enforced power limit"};

template <auto NvmlApi::*Member, class Raw>
Return CallForOne(const Target& target, std::uint64_t* value) {
  Raw raw{};
  const Return code = Call(target.api.*Member, target.device, &raw);
  if (code == kSuccess) *value = raw;
  return code;
}

constexpr auto kTotalEnergy = CallForOne<&NvmlApi::get_total_energy, unsigned long long>;
constexpr auto kPowerUsage = CallForOne<&NvmlApi::get_power_usage, unsigned>;
constexpr auto kPowerLimit = CallForOne<&NvmlApi::get_power_limit, unsigned>;
constexpr auto kEnforcedLimit = CallForOne<&NvmlApi::get_enforced_power_limit, unsigned>;

// nvmlDeviceGetPowerUsage is a one-second average from Ampere on, except for GA100, and instant
// before (nvml.h). GA100 boards have PCI device ids 0x20xx.
bool PowerUsageIsAverage(const Target& target) {
  unsigned architecture = kArchitectureUnknown;
  if (Call(target.api.get_architecture, target.device, &architecture) != kSuccess) return false;
  if (architecture < kArchitectureAmpere || architecture == kArchitectureUnknown) return false;
  PciInfo pci{};
  const bool is_ga100 = Call(target.api.get_pci_info, target.device, &pci) == kSuccess &&
                        (pci.pci_device_id >> 24U) == 0x20;
  return !is_ga100;
}

Return Refuse(const Target& /*target*/, std::uint64_t* /*value*/) { return kFunctionNotFound; }

}  // namespace

Result<std::uint64_t> DecodeValue(const FieldValue& field) {
  const auto from_signed = [&](long long value) -> Result<std::uint64_t> {
    if (value >= 0) return static_cast<std::uint64_t>(value);
    return Error{ErrorCode::kInternal,
                 fmt::format("the driver sent {} for field {}", value, field.field_id)};
  };
  switch (field.value_type) {
    case kValueDouble: {
      const double value = field.value.as_double;
      if (value >= 0 && value < 0x1p63) return static_cast<std::uint64_t>(std::llround(value));
      return Error{ErrorCode::kInternal,
                   fmt::format("the driver sent {} for field {}", value, field.field_id)};
    }
    case kValueUnsigned:
      return std::uint64_t{field.value.as_unsigned};
    case kValueUnsignedLong:
      return std::uint64_t{field.value.as_unsigned_long};
    case kValueUnsignedLongLong:
      return std::uint64_t{field.value.as_unsigned_long_long};
    case kValueSignedLongLong:
      return from_signed(field.value.as_long_long);
    case kValueSignedInt:
      return from_signed(field.value.as_int);
    case kValueUnsignedShort:
      return std::uint64_t{field.value.as_unsigned_short};
    default:
      return Error{ErrorCode::kInternal, fmt::format("field {} has the unknown type {}",
                                                     field.field_id, field.value_type)};
  }
}

Return ReadField(const Target& target, unsigned id, unsigned scope, FieldValue* field) {
  *field = FieldValue{};
  field->field_id = id;
  field->scope_id = scope;
  const Return code = Call(target.api.get_field_values, target.device, 1, field);
  return code == kSuccess ? field->nvml_return : code;
}

FieldChannels::FieldChannels(Probe& probe, const std::string& name) {
  for (std::size_t i = 0; i < kChannelCount; ++i)
    sources_[i].doing = fmt::format("{}: read {}", name, kChannelNames[i]);
  const bool usage_is_average = PowerUsageIsAverage(probe.target);
  const Function instant_usage = usage_is_average ? Refuse : kPowerUsage;
  const Function average_usage = usage_is_average ? kPowerUsage : Refuse;
  Find(probe, Channel::kEnergy,
       {FieldId{kFieldEnergy, kScopeGpu}, FieldId{kFieldTotalEnergy, kScopeGpu}, kTotalEnergy,
        FieldId{kFieldEnergy, kScopeModule}});
  Find(probe, Channel::kInstantPower,
       {FieldId{kFieldPowerInstant, kScopeGpu}, instant_usage,
        FieldId{kFieldPowerInstant, kScopeModule}});
  Find(probe, Channel::kAveragePower,
       {FieldId{kFieldPowerAverage, kScopeGpu}, average_usage,
        FieldId{kFieldPowerAverage, kScopeModule}});
  Find(probe, Channel::kMemoryPower,
       {FieldId{kFieldPowerAverage, kScopeMemory}, FieldId{kFieldPowerInstant, kScopeMemory}});
  Find(probe, Channel::kRequestedLimit,
       {FieldId{kFieldPowerRequestedLimit, kScopeGpu}, kPowerLimit,
        FieldId{kFieldPowerRequestedLimit, kScopeModule}});
  Find(probe, Channel::kEnforcedLimit,
       {FieldId{kFieldPowerCurrentLimit, kScopeGpu}, kEnforcedLimit,
        FieldId{kFieldPowerCurrentLimit, kScopeModule}});
}

void FieldChannels::Find(Probe& probe, Channel channel, std::initializer_list<Way> ways) {
  Source& source = sources_[static_cast<unsigned>(channel)];
  Return refusal = kFunctionNotFound;
  for (const Way& way : ways) {
    FieldValue field{};
    std::uint64_t ignored = 0;
    const auto* id = std::get_if<FieldId>(&way);
    const Return code = id != nullptr ? ReadField(probe.target, id->id, id->scope, &field)
                                      : std::get<Function>(way)(probe.target, &ignored);
    probe.Note(code);
    if (!NeverWorks(code)) {
      if (id == nullptr) {
        source.way = std::get<Function>(way);
        return;
      }
      source.way = *id;
      source.position = request_size_;
      request_[request_size_].field_id = id->id;
      request_[request_size_].scope_id = id->scope;
      ++request_size_;
      return;
    }
    if (code == kNotSupported) refusal = code;
  }
  Error error = NvmlError(refusal, source.doing);
  error.code = ErrorCode::kNotSupported;
  source.way = std::move(error);
}

FieldBatch FieldChannels::ReadAll(const Target& target) const { return {*this, target}; }

Result<Sample> FieldChannels::Read(const Target& target, Channel channel) const {
  const Source& from = source(channel);
  if (const auto* error = std::get_if<Error>(&from.way)) return *error;
  if (std::holds_alternative<Function>(from.way)) return CallFunction(target, from);
  const FieldId id = std::get<FieldId>(from.way);
  FieldValue field{};
  const Return code = ReadField(target, id.id, id.scope, &field);
  if (code != kSuccess) return NvmlError(code, from.doing);
  return Decode(channel, field);
}

Result<Sample> FieldChannels::CallFunction(const Target& target, const Source& from) const {
  std::uint64_t value = 0;
  const Return code = std::get<Function>(from.way)(target, &value);
  if (code != kSuccess) return NvmlError(code, from.doing);
  return Sample{.value = value, .taken_at = std::nullopt};
}

Result<Sample> FieldChannels::Decode(Channel channel, const FieldValue& field) const {
  const Source& from = source(channel);
  if (field.nvml_return != kSuccess) return NvmlError(field.nvml_return, from.doing);
  auto value = DecodeValue(field);
  if (!value.ok()) return std::move(value).error().While(from.doing);
  // Boards without a memory sensor answer the memory scope with success and zero.
  if (channel == Channel::kMemoryPower && value.value() == 0) {
    return Error{ErrorCode::kNotSupported,
                 from.doing + ": the driver reports none: this board has no such sensor"};
  }
  Sample sample{.value = value.value(), .taken_at = std::nullopt};
  if (field.timestamp > 0) sample.taken_at = WallTime(std::chrono::microseconds(field.timestamp));
  return sample;
}

FieldBatch::FieldBatch(const FieldChannels& channels, const Target& target)
    : channels_(channels), target_(target), fields_(channels.request_) {
  if (channels.request_size_ == 0) return;
  code_ = Call(target.api.get_field_values, target.device, static_cast<int>(channels.request_size_),
               fields_.data());
}

Result<Sample> FieldBatch::operator[](Channel channel) const {
  const FieldChannels::Source& from = channels_.source(channel);
  if (const auto* error = std::get_if<Error>(&from.way)) return *error;
  if (std::holds_alternative<FieldChannels::Function>(from.way))
    return channels_.CallFunction(target_, from);
  if (code_ != kSuccess) return NvmlError(code_, from.doing);
  return channels_.Decode(channel, fields_[from.position]);
}

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
