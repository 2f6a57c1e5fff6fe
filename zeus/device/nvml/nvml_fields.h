#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/device/nvml/nvml_sensor.h"

namespace zeus::nvml {

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

}  // namespace zeus::nvml
