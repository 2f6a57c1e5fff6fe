#pragma once

#include <memory>
#include <string>
#include <vector>

#include "zeus/device/gpu.h"
#include "zeus/device/nvml/nvml_fields.h"
#include "zeus/device/nvml/nvml_handle.h"
#include "zeus/device/nvml/nvml_readers.h"
#include "zeus/device/nvml/nvml_sensor.h"
#include "zeus/device/nvml/nvml_session.h"

namespace zeus::nvml {

// One NVIDIA board. Which sensors it has is found out when it is opened and remembered with the
// reason; knobs are read back after each change. Thread-safe, also after fork().
class NvmlGpu final : public Gpu {
 public:
  // `name` is the meter's, "gpu:0". kUnavailable when the board is lost or needs a reset.
  static Result<std::unique_ptr<NvmlGpu>> Open(std::shared_ptr<NvmlSession> session, Device device,
                                               std::string name);

  const std::string& name() const override { return name_; }
  const GpuIdentity& identity() const override { return identity_; }

  GpuReading Read() override;

  Result<EnergyReading> Energy() override;
  using Gpu::Power;
  Result<Watts> Power(PowerKind kind) override;
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
  NvmlGpu(std::shared_ptr<NvmlSession> session, Probe& probe, std::string name,
          GpuIdentity identity);

  Result<Target> CurrentTarget();
  template <class T>
  Result<T> ReadSensor(const Sensor<T>& sensor);
  Result<Watts> ReadPower(Channel channel);
  Result<LimitBounds> Bounds(const Target& target) const;
  Result<PowerLimit> ReadPowerLimit(const Target& target) const;
  std::string Doing(const char* what) const { return name_ + ": " + what; }

  const std::string name_;
  const GpuIdentity identity_;
  NvmlHandle handle_;

  const FieldChannels channels_;
  const Sensor<Celsius> temperature_;
  const Sensor<Utilization> utilization_;
  const Sensor<MemoryUse> memory_;
  const Sensor<Hertz> graphics_clock_;
  const Sensor<Hertz> memory_clock_;
  const Sensor<ThrottleReasons> throttle_;
  const Sensor<LimitBounds> bounds_;
  const Result<LimitBounds> bounds_at_start_;  // They do not change: read once.
};

}  // namespace zeus::nvml
