#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

namespace zeus::amd {

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
