#pragma once

#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/energy_meter.h"
#include "zeus/device/gpu.h"

namespace zeus {

class KnobLender;  // zeus/device/knobs/knob_lender.h

struct CpuIdentity {
  int package = 0;     // Socket number of the kernel.
  std::string model;   // "AMD EPYC 7763 64-Core Processor"; empty if unknown.
  std::string source;  // "perf", "powercap", "hwmon"
};

// One CPU socket. Its energy excludes DRAM: the package domain of RAPL does. Thread-safe.
class CpuPackage : public EnergyMeter {
 public:
  virtual const CpuIdentity& identity() const = 0;

  // The memory attached to this socket, or null when it cannot be measured. Owned by the package.
  virtual EnergyMeter* dram() = 0;

  // The process that turns the power limit for others; null where this process turns it.
  virtual KnobLender* lender() { return nullptr; }

  // The long-term constraint of RAPL.
  virtual Result<PowerLimit> CurrentPowerLimit() = 0;
  // Nothing puts it back when the program is killed: programs use a GuardedKnob.
  virtual Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) = 0;
};

}  // namespace zeus
