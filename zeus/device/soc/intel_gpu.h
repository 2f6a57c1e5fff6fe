#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "zeus/device/energy_counter.h"
#include "zeus/device/gpu.h"
#include "zeus/device/node.h"
#include "zeus/device/sysfs.h"

namespace zeus::soc {

// A discrete Intel GPU through the hwmon attributes of the i915 or xe driver: an energy counter, a
// power limit and, with newer kernels, a temperature. The drivers have no power reading:
// power is the growth of energy over time. Thread-safe.
class IntelHwmonGpu final : public Gpu {
 public:
  struct Parts {
    std::string name;  // "gpu:0"
    GpuIdentity identity;
    std::string driver;                 // "i915" or "xe", for messages.
    std::filesystem::path energy;       // The file energyN_input, in microjoules.
    Result<SysfsPowerLimit> limit;      // The limit, or why there is none.
    std::filesystem::path temperature;  // tempN_input, millidegrees; empty if there is none.
  };

  explicit IntelHwmonGpu(Parts parts) : parts_(std::move(parts)) {}

  const std::string& name() const override { return parts_.name; }
  const GpuIdentity& identity() const override { return parts_.identity; }
  Result<EnergyReading> Energy() override;
  std::optional<Seconds> LongestReadInterval() const override;
  Result<Watts> Power(PowerKind kind) override;
  using Gpu::Power;
  Result<Celsius> Temperature() override;
  Result<Utilization> CurrentUtilization() override;
  Result<MemoryUse> CurrentMemoryUse() override;
  Result<ThrottleReasons> CurrentThrottleReasons() override;

  Result<PowerLimit> CurrentPowerLimit() override;
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;
  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override;
  Result<Hertz> CurrentClock(ClockDomain domain) override;
  Status LockClockWithoutJournal(ClockDomain domain, ClockRange range) override;
  Status ResetClock(ClockDomain domain) override;
  Result<Persistence> CurrentPersistence() override;
  Status SetPersistence(Persistence mode) override;

 private:
  Error Refuse(const std::string& what) const;

  const Parts parts_;
  std::mutex mutex_;
  EnergyCounter counter_;  // Guarded by mutex_, together with the reading.
};

// Adds the Intel GPUs below <sysfs>/class/drm that count energy, numbered from first_gpu_index in
// the order of their PCI addresses; for the others why they do not. No other GPU is in `findings`.
void FindIntelGpus(const Surroundings& surroundings, Findings& findings);

}  // namespace zeus::soc
