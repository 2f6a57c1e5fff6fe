#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/energy_meter.h"

namespace zeus {

class KnobLender;  // zeus/device/knobs/knob_lender.h

enum class Vendor { kNvidia, kAmd, kIntel };
const char* VendorName(Vendor vendor);

// Identity of a GPU. Indices depend on the process and the boot; a UUID or a PCI address does not.
struct GpuIdentity {
  std::string uuid;  // "GPU-…" (NVIDIA), hexadecimal unique id (AMD); empty if it has none.
  std::string pci_address;  // "0000:3b:00.0", lower case.
  std::string model;        // "Tesla V100-PCIE-16GB"
  std::string driver;       // Version of the driver, empty if it does not tell.
  Vendor vendor;
};

struct PowerRange {
  Watts min;
  Watts max;
};

struct PowerLimit {
  PowerRange range;
  Watts default_limit;
  Watts requested;  // The limit that the last setter asked for.
  Watts enforced;  // The limit that the device obeys: another agent (BMC, thermal) may be stricter.
};

enum class PowerKind {
  kInstant,  // Over the sensor's own short window.
  kOneSecondAverage,
  kMemory,  // Power of the memory alone.
};

enum class ClockDomain { kGraphics, kMemory };
const char* ClockDomainName(ClockDomain domain);

struct ClockRange {
  Hertz min;
  Hertz max;

  friend bool operator==(const ClockRange&, const ClockRange&) = default;
};

struct Utilization {
  double compute;  // Share of time with a kernel running, 0 to 1.
  double memory;   // Share of time with memory traffic, 0 to 1.
};

struct MemoryUse {
  std::uint64_t used_bytes;
  std::uint64_t total_bytes;
};

enum class Persistence { kOff, kOn };

// Why a GPU runs below the clock it was asked for. Several may hold at once.
struct ThrottleReasons {
  bool idle = false;
  bool power_cap = false;
  bool thermal = false;
  bool locked_clock = false;
  bool other = false;
};

// Everything that can be read from a GPU, taken together: adapters batch what the driver lets
// them batch, so this is cheaper than the single calls and its parts belong to one moment.
struct GpuReading {
  Result<EnergyReading> energy;
  Result<Watts> instant_power;
  Result<Watts> average_power;
  Result<Watts> memory_power;
  Result<Watts> requested_limit;
  Result<Watts> enforced_limit;
  Result<Celsius> temperature;
  Result<Utilization> utilization;
  Result<MemoryUse> memory;
  Result<Hertz> graphics_clock;
  Result<Hertz> memory_clock;
  Result<ThrottleReasons> throttle;
};

// One GPU. Implementations are in nvml/, amd/, soc/ and sim/.
// Every implementation passes testing/gpu_conformance.h. Thread-safe.
class Gpu : public EnergyMeter {
 public:
  virtual const GpuIdentity& identity() const = 0;

  // Whether the GPU, and all that was set on it, is gone when this process ends: simulated ones.
  virtual bool EndsWithProcess() const { return false; }

  // The process that turns the knobs of this GPU for others; null where this process turns them.
  virtual KnobLender* lender() { return nullptr; }

  // Whether a setting must be noted in a journal, because it would outlive this process.
  bool NeedsJournal() { return !EndsWithProcess() && lender() == nullptr; }

  // Unless an adapter knows better: the single calls, one after the other.
  virtual GpuReading Read();

  virtual Result<Watts> Power(PowerKind kind) = 0;
  virtual Result<Celsius> Temperature() = 0;
  virtual Result<Utilization> CurrentUtilization() = 0;
  virtual Result<MemoryUse> CurrentMemoryUse() = 0;
  virtual Result<ThrottleReasons> CurrentThrottleReasons() = 0;

  virtual Result<PowerLimit> CurrentPowerLimit() = 0;

  // Nothing remembers the limit from before, and nothing puts it back when the program is killed:
  // for adapters and tests. Programs use a ScopedPowerLimit or a GuardedKnob.
  // Returns the limit after it was read back. enforced < requested is not an error: the caller
  // asked for a cap and a stricter one holds. kInvalidArgument outside the range,
  // kPermissionDenied without privileges, kUnavailable when the device did not take the value.
  virtual Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) = 0;

  // Ascending. For kGraphics: those available at the highest memory clock.
  virtual Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) = 0;
  virtual Result<Hertz> CurrentClock(ClockDomain domain) = 0;

  // Keeps the clock inside the range until ResetClock(). Like the limit, it stays that way when the
  // program is killed: programs use a GuardedKnob. kInvalidArgument if no supported clock
  // lies inside.
  virtual Status LockClockWithoutJournal(ClockDomain domain, ClockRange range) = 0;
  virtual Status ResetClock(ClockDomain domain) = 0;

  // Whether the driver stays loaded without clients; without it limits and counters are lost
  // when the last client leaves.
  virtual Result<Persistence> CurrentPersistence() = 0;
  virtual Status SetPersistence(Persistence mode) = 0;

  using EnergyMeter::Power;

  // Instant power where the device has it, else the average.
  Result<Watts> Power() override;
};

}  // namespace zeus
