#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/device/nvml/nvml_api.h"
#include "zeus/device/nvml/nvml_session.h"

namespace zeus::nvml {

// The device to read and the functions to read it with.
struct Target {
  const NvmlApi& api;
  Device device;
};

// Notes whether the device disappeared while its sensors were tried one after the other.
struct Probe {
  Target target;
  std::optional<Return> gone;

  void Note(Return code) {
    if (DeviceIsGone(code)) gone = code;
  }
};

// One value of a device for which NVML has several ways, newest first. The way that works is found
// out once; a device that has none costs no call later, only the reason. Immutable.
template <class T>
class Sensor {
 public:
  using Way = Return (*)(const Target&, T*);

  // A way that fails for a passing reason counts as one that works.
  Sensor(Probe& probe, std::string doing, std::initializer_list<Way> ways)
      : doing_(std::move(doing)) {
    for (const Way way : ways) {
      T ignored{};
      const Return code = way(probe.target, &ignored);
      probe.Note(code);
      if (!NeverWorks(code)) {
        way_ = way;
        return;
      }
      // "Not supported" says more than "this driver lacks the function".
      if (!unsupported_ || unsupported_code_ == kFunctionNotFound) Refuse(code);
    }
  }

  Result<T> Read(const Target& target) const {
    if (way_ == nullptr) return *unsupported_;
    T value{};
    const Return code = way_(target, &value);
    if (code != kSuccess) return NvmlError(code, doing_);
    return value;
  }

 private:
  void Refuse(Return code) {
    unsupported_ = NvmlError(code, doing_);
    unsupported_->code = ErrorCode::kNotSupported;
    unsupported_code_ = code;
  }

  std::string doing_;
  Way way_ = nullptr;
  std::optional<Error> unsupported_;
  Return unsupported_code_ = kSuccess;
};

// The values that nvmlDeviceGetFieldValues can deliver together.
enum class Channel : unsigned {
  kEnergy,
  kInstantPower,
  kAveragePower,
  kMemoryPower,
  kRequestedLimit,
  kEnforcedLimit,
};
inline constexpr std::size_t kChannelCount = 6;

// In millijoules or milliwatts.
struct Sample {
  std::uint64_t value;
  std::optional<WallTime> taken_at;  // When the driver took it, where it tells.
};

// The number in a field, whichever of NVML's types it has. kInternal when it is negative, not a
// number, or of a type that NVML did not have when this was written.
Result<std::uint64_t> DecodeValue(const FieldValue& field);

class FieldBatch;

// Where each channel of one device comes from: a field of GPU scope where the device has it, a
// function of older drivers second, a field of module scope last (on Grace-Hopper boards some
// values exist only for CPU and GPU together). Found out by asking, not from the architecture:
// boards of one architecture differ. Immutable.
class FieldChannels {
 public:
  FieldChannels(Probe& probe, const std::string& name);

  // Everything in one call to the driver, plus one per channel that has no field.
  FieldBatch ReadAll(const Target& target) const;

  Result<Sample> Read(const Target& target, Channel channel) const;

 private:
  friend class FieldBatch;

  struct FieldId {
    unsigned id;
    unsigned scope;
  };
  using Function = Return (*)(const Target&, std::uint64_t*);
  using Way = std::variant<FieldId, Function>;
  struct Source {
    std::string doing;
    std::variant<Error, FieldId, Function> way;
    std::size_t position = 0;  // In the batch, if it is a field.
  };

  void Find(Probe& probe, Channel channel, std::initializer_list<Way> ways);
  const Source& source(Channel channel) const { return sources_[static_cast<unsigned>(channel)]; }
  Result<Sample> Decode(Channel channel, const FieldValue& field) const;
  Result<Sample> CallFunction(const Target& target, const Source& source) const;

  std::array<Source, kChannelCount> sources_;
  std::array<FieldValue, kChannelCount> request_{};
  std::size_t request_size_ = 0;
};

// The values of one call of nvmlDeviceGetFieldValues.
class FieldBatch {
 public:
  Result<Sample> operator[](Channel channel) const;

 private:
  friend class FieldChannels;
  FieldBatch(const FieldChannels& channels, const Target& target);

  const FieldChannels& channels_;
  const Target target_;
  std::array<FieldValue, kChannelCount> fields_;
  Return code_ = kSuccess;
};

// One field on its own.
Return ReadField(const Target& target, unsigned id, unsigned scope, FieldValue* field);

// The ways to a value, one function per NVML call, in our units. Combined by Sensor.

// Reads the identity of the device. The UUID is required; fields that an old driver cannot report
// stay empty.
Result<GpuIdentity> ReadIdentity(const Target& target);

// Returns a UUID that begins with "GPU-" or "MIG-".
Result<std::string> ReadUuid(const Target& target);

Return ReadTemperatureV(const Target& target, Celsius* temperature);
Return ReadTemperature(const Target& target, Celsius* temperature);
Return ReadUtilization(const Target& target, Utilization* utilization);
Return ReadMemoryV2(const Target& target, MemoryUse* memory);
Return ReadMemory(const Target& target, MemoryUse* memory);
Return ReadGraphicsClock(const Target& target, Hertz* clock);
Return ReadMemoryClock(const Target& target, Hertz* clock);
Return ReadThrottleReasons(const Target& target, ThrottleReasons* reasons);

// Whether the board is divided into instances now. A board or driver that cannot say is not.
bool InMigMode(const Target& target);

// The range of power limits that the board allows, in milliwatts as in NVML.
struct LimitBounds {
  unsigned min;
  unsigned max;
  unsigned default_limit;
};
Return ReadGpuBounds(const Target& target, LimitBounds* bounds);
Return ReadConstraints(const Target& target, LimitBounds* bounds);
Return ReadModuleBounds(const Target& target, LimitBounds* bounds);

}  // namespace zeus::nvml
