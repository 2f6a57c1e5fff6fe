#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

namespace zeus::amd {

// Finds counters that stand still although the board draws power: firmware and driver bugs that
// last until the process or the machine restarts (rocm_smi_lib issue 180, amdsmi issue 38). It
// watches ordinary readings, so nothing has to wait at start-up. Not thread-safe.
class StillCounter {
 public:
  // Above this a counter of 15 uJ ticks moves within any millisecond. Below it the board may
  // sleep with its firmware, and a still counter proves nothing.
  static constexpr Watts kIdlePower{10.0};
  static constexpr Seconds kLongestStillness{1.0};

  // A reading of the counter. False when it is the same as the last: then tell the power too.
  bool Moved(TimePoint now, std::uint64_t ticks);

  // The power reported beside a counter that did not move; empty if it could not be read.
  void SawPower(TimePoint now, std::optional<Watts> power);

  // True from the end, under load, of a stillness longer than kLongestStillness until the counter
  // moves. The load need not have been seen all the time: a counter that works and stands still for
  // a second belongs to a board that sleeps, and one that draws power has not slept for a
  // millisecond.
  bool stale() const { return stale_; }

  // How often it was stale: energy of those times is lost to the counter.
  std::uint64_t spells() const { return spells_; }

 private:
  std::optional<std::uint64_t> last_;
  TimePoint still_since_;  // The last moment at which standing still was no surprise.
  bool stale_ = false;
  std::uint64_t spells_ = 0;
};

// The unit of the firmware's energy accumulator. The libraries announce 15.3 uJ, which is this
// rounded (+0.27 %).
inline constexpr Joules kEnergyTick(0x1p-16);

struct CounterSample {
  std::uint64_t ticks;
  Joules tick;
};

struct PowerCap {
  PowerRange range;
  Watts default_limit;
  Watts current;
};

// One board as one interface of the driver (sysfs, ROCm SMI, AMD SMI) shows it, converted to units
// but otherwise unchanged; AmdGpu adds the behaviour that all interfaces share. An interface cannot
// do what it does not override. Thread-safe.
class Board {
 public:
  explicit Board(GpuIdentity identity) : identity_(std::move(identity)) {}
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  virtual ~Board() = default;

  const GpuIdentity& identity() const { return identity_; }

  virtual Result<CounterSample> Energy() { return Unknown("energy counter"); }
  virtual Result<Watts> Power(PowerKind /*kind*/) { return Unknown("power"); }
  virtual Result<Celsius> Temperature() { return Unknown("temperature"); }
  virtual Result<Utilization> Busy() { return Unknown("utilization"); }
  virtual Result<MemoryUse> Memory() { return Unknown("memory use"); }
  virtual Result<PowerCap> Cap() { return Unknown("power limit"); }
  virtual Status SetCap(Watts /*limit*/) { return Unknown("power limit"); }
  virtual Result<std::vector<Hertz>> SupportedClocks(ClockDomain /*domain*/) {
    return Unknown("clock table");
  }
  virtual Result<Hertz> Clock(ClockDomain /*domain*/) { return Unknown("clock"); }
  virtual Status LockClock(ClockDomain /*domain*/, ClockRange /*range*/) {
    return Unknown("clock control");
  }
  virtual Status ResetClock(ClockDomain /*domain*/) { return Unknown("clock control"); }

 private:
  Error Unknown(const char* what) const {
    return {ErrorCode::kNotSupported,
            std::string("no ") + what + " for " + identity_.pci_address + ": it is not in sysfs"};
  }

  const GpuIdentity identity_;
};

}  // namespace zeus::amd
