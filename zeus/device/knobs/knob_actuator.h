#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"

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
  // Persistence mode of the driver, where the actuator changes it; nullopt elsewhere.
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

  // Whether the knob is borrowed from a process that remembers what it was and puts it back. Then
  // PutBack() ends the loan, whatever the setting is by then, and no journal knows of it.
  virtual bool borrowed() const { return false; }

  // Returns what the device obeys. nullopt where nothing tells: of clocks, unless the device says
  // that it runs at a locked one.
  virtual Result<std::optional<Setting>> InForce() { return std::optional<Setting>(); }

  // To be called after Read() and before the first Apply(): what makes settings last. Never a
  // reason to fail.
  virtual void Prepare() {}
  virtual Status Apply(const Setting& setting) = 0;
  // Clocks only: keeps the clock inside the range.
  virtual Status ApplyRange(const ClockRange& range) {
    (void)range;
    return Error{ErrorCode::kNotSupported, device().name + " has no range for this knob"};
  }
  virtual Status PutBack(const KnobState& state) = 0;

  // The setting of a driver that was just loaded, as text. kNotSupported where nothing tells it.
  virtual Result<std::string> PutToDefault() = 0;

  // Grows as long as the driver keeps settings: a smaller value later means that the driver was
  // reloaded and the settings are its defaults again. nullopt where settings last until the next
  // boot, or where nothing tells.
  virtual std::optional<Joules> EpochMark() { return std::nullopt; }

  // How many reloads of the driver this process has noticed, where EpochMark() ends with the first
  // of them.
  virtual std::uint64_t ReloadsSeen() { return 0; }
};

// The power limit or a clock of a GPU, which must outlive it. They keep the driver
// loaded (persistence mode) where they may: it forgets its settings when the last client leaves.
// kNotSupported when the GPU has no power limit, kInvalidArgument for the knob of a CPU.
// kPersistence is the persistence mode alone.
Result<std::unique_ptr<KnobActuator>> MakeActuator(KnobKind kind, Gpu& gpu);

// The long-term power limit of a CPU socket, which must outlive it.
Result<std::unique_ptr<KnobActuator>> MakeActuator(CpuPackage& cpu);

// The outcome of putting a knob back.
enum class KnobReturn {
  kPutBack,
  kNotOurs,  // Another program has set it since: it is left as it is.
};

// Puts the knob back if it still has one of our settings (or the one before them). Where none is
// given, or the device does not tell its setting, it is put back in any case.
Result<KnobReturn> PutBackIfOurs(KnobActuator& actuator, const KnobState& before,
                                 const std::vector<Setting>& ours);

// "250 W", "not locked"
std::string ToText(const KnobState& state);

// "power limit of gpu:0"
std::string KnobName(KnobKind kind, const std::string& device);

}  // namespace zeus
