#pragma once

#include <optional>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knob.h"
#include "zeus/device/knob_choices.h"

namespace zeus {

// By what a device is found again later, perhaps by another process.
struct KnobDevice {
  std::string name{};  // "gpu:0": of this process; others may number differently.
  std::string uuid{};
  std::string pci_address{};
  std::string driver{};
};

// All that must be put back after a knob was turned.
struct KnobState {
  // nullopt: a clock that is not locked.
  std::optional<Setting> setting{};
  // Of the driver, where the actuator changes it; nullopt elsewhere.
  std::optional<Persistence> persistence{};
};

// The bare access to one knob of one device, without a memory. A DeviceKnob puts things back with
// it, and so does a later process that repairs what a killed one left. Thread-safe, like devices.
class KnobActuator {
 public:
  virtual ~KnobActuator() = default;

  virtual const KnobDevice& device() const = 0;
  virtual KnobKind kind() const = 0;

  virtual Result<KnobChoices> Choices() = 0;
  virtual Watts max_power() const = 0;

  virtual Result<KnobState> Read() = 0;

  // To be called after Read() and before the first Apply(): what makes settings last. Never a
  // reason to fail.
  virtual void Prepare() {}
  virtual Status Apply(const Setting& setting) = 0;
  virtual Status PutBack(const KnobState& state) = 0;

  // Grows as long as the driver keeps settings: a smaller value later means that the driver was
  // reloaded and the settings are its defaults again. nullopt where settings last until the next
  // boot, or where nothing tells.
  virtual std::optional<Joules> EpochMark() { return std::nullopt; }
};

// "power limit of gpu:0"
std::string KnobName(KnobKind kind, const std::string& device);

}  // namespace zeus
