#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// kPersistence is the persistence mode of a GPU's driver, which a process that turns several knobs
// of the GPU keeps and puts back by itself. Its one setting, Watts(1), means that it is on.
enum class KnobKind { kGpuPowerLimit, kGraphicsClock, kCpuPowerLimit, kMemoryClock, kPersistence };

// Whether its settings are in hertz; the others are in watts.
constexpr bool IsClock(KnobKind kind) {
  return kind == KnobKind::kGraphicsClock || kind == KnobKind::kMemoryClock;
}

// "gpu_power_limit", "graphics_clock", "cpu_power_limit", "memory_clock", "persistence"
const char* KnobKindName(KnobKind kind);
// Knobs that people may choose: not kPersistence.
Result<KnobKind> ParseKnobKind(std::string_view name);

// A value of a knob: a power limit or a clock. All settings of one knob have the same unit.
using Setting = std::variant<Watts, Hertz>;

// How high a knob may be turned. A limit below what the device can do is taken for an
// administrator's cap, and Zeus keeps to it unless it is told otherwise.
enum class Ceiling {
  kAsFound,   // The setting in force before the knob was turned.
  kOfDevice,  // The highest setting that the device allows.
};

// "150 W", "1380 MHz"
std::string ToText(const Setting& setting);
// Watts or megahertz, as in files; the unit is that of the kind.
double ToNumber(const Setting& setting);
Setting SettingOf(KnobKind kind, double number);
// Whether they are one and the same to the hardware, which rounds to eighths of a watt.
bool SameSetting(const Setting& a, const Setting& b);

// Something about a device, or about all devices of a job, that trades speed for power without
// changing what is computed. One owner.
class Knob {
 public:
  virtual ~Knob() = default;

  // "power limit of gpu:0", "graphics clock of gpu:0 to gpu:3"
  virtual const std::string& name() const = 0;
  virtual KnobKind kind() const = 0;

  // The settings worth trying, fastest first: from the highest down by `stride`, and the lowest.
  // The highest is the ceiling of the knob. One setting when the device allows no other.
  virtual Result<std::vector<Setting>> Settings(const Setting& stride) = 0;

  // Returns the setting in force: the limit that was set, or a stricter one from outside; the
  // highest clock when none is locked. kInvalidArgument when devices differ.
  virtual Result<Setting> Current() = 0;

  // The most that the devices behind it may draw: the sum of their highest power limits.
  virtual Watts max_power() const = 0;

  // Takes effect within tens of milliseconds. The first call takes down the value before it.
  // kConflict above the ceiling.
  virtual Status Set(const Setting& setting) = 0;

  // Whether the devices obey `setting` now, as far as they report it. kUnavailable names the device
  // that obeys another setting: another program set it, the driver was reloaded, or a cap from
  // outside holds.
  virtual Status CheckInForce(const Setting& setting) {
    (void)setting;
    return Ok();
  }

  // Restores the setting before the first Set(); does nothing without one. A setting that another
  // program made meanwhile is left alone, with a warning. May be called from any thread and more
  // than once.
  virtual Status Restore() = 0;
};

// The settings that a knob has: all in a range, or a list where the hardware knows steps only.
struct KnobChoices {
  Setting lowest;
  Setting highest;
  std::vector<Setting> steps{};  // Ascending, from lowest to highest; empty for a range.
};

// Returns the settings that both have; kNotSupported if there are none.
Result<KnobChoices> InBoth(const KnobChoices& a, const KnobChoices& b);

// Those that are not above `ceiling`; at least the lowest one.
KnobChoices UpTo(const Setting& ceiling, KnobChoices choices);

// From the highest down by `stride`, and the lowest. A stride of zero means 25 W in a range and
// 15 steps in a list; less than 1 W in a range means 1 W. kInvalidArgument for a stride that is
// negative or of another unit.
Result<std::vector<Setting>> Spread(const KnobChoices& choices, const Setting& stride);

// The rules of a machine's administrator for its knobs, in a file that belongs to root:
// docs/knobs.md.
struct KnobPolicy {
  bool may_raise = false;          // Programs may set more than they found.
  bool caps_are_intended = false;  // Limits below the default are no leftovers: no warning.

  Ceiling Allowed(Ceiling asked) const { return may_raise ? Ceiling::kOfDevice : asked; }
};

// Returns the default policy without a file. kPermissionDenied for a file that others than root
// could have written, kInvalidArgument for a malformed one.
Result<KnobPolicy> ReadKnobPolicy(const std::filesystem::path& file);

// That of /etc/zeus/knobs.json. A file that cannot be used is said in the log, once, and allows
// nothing.
const KnobPolicy& KnobPolicyOfMachine();

}  // namespace zeus
