#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/energy_counter.h"
#include "zeus/device/gpu.h"
#include "zeus/device/sim/fault.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/load.h"

namespace zeus::sim {

class GpuCore;

// A GPU that exists only in this process, on any clock: with a VirtualClock a simulated week takes
// milliseconds, and the same seed gives the same readings. Behind the Gpu interface a program sees
// what the sensors of the model show, faults included; the members below it play the rest of the
// world: processes that load the GPU, broken hardware, and the truth for scoring.
// Thread-safe if the clock is. The clock must outlive it.
class SimulatedGpu final : public Gpu {
 public:
  struct Options {
    std::uint64_t seed = 1;
    unsigned index = 0;
  };

  // `model` is one of GpuModels().
  SimulatedGpu(Clock& clock, const GpuModel& model, Options options);
  SimulatedGpu(Clock& clock, const GpuModel& model) : SimulatedGpu(clock, model, Options{}) {}
  ~SimulatedGpu() override;

  const std::string& name() const override { return name_; }
  const GpuIdentity& identity() const override { return identity_; }
  bool EndsWithProcess() const override { return true; }

  using Gpu::Power;
  Result<EnergyReading> Energy() override;
  GpuReading Read() override;
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

  Result<std::uint32_t> AttachLoad(const LoadSpec& load);
  void DetachLoad(std::uint32_t id);
  Result<Seconds> StepTime(std::uint32_t id);
  Result<double> StepsDone(std::uint32_t id);
  // From now on until the load ends by itself, if nothing changes. kNotFound once it has.
  Result<Seconds> TimeLeft(std::uint32_t id);
  // Fault::at counts from the construction of this object. Whether the fault means something and
  // there was room for it: GpuCore says more.
  bool InjectFault(const Fault& fault);
  void ClearFaults();
  void SetAmbient(Celsius ambient);

  // The truth, for scoring. Through no fault can it be wrong.
  Joules ExactEnergy();
  Watts ExactPower();
  // Applies a change at `time` since the construction of this object, or at the time of the last
  // access if that is later. A program that acts on the GPU uses it to act in the past.
  Status ChangeAt(Seconds time, const std::function<Status(GpuCore&)>& change);
  // All of the present state, as a copy (zeus/device/sim/gpu_core.h).
  GpuCore Snapshot();

 private:
  // Brings the core to the present and calls `function(*core_)`, as the world or as a driver call.
  template <class Function>
  auto WithCore(Function function);
  template <class Function>
  auto DriverCall(Function function) -> decltype(function(std::declval<GpuCore&>()));

  void WaitIfSlow();
  std::optional<Error> Refusal();  // The error with which a fault makes a setter fail, if any.
  Error Lost() const;
  Result<EnergyReading> ReadEnergy();
  Result<Watts> ReadPower(PowerKind kind);
  Result<Utilization> ReadUtilization();

  Clock& clock_;
  const TimePoint start_;
  const std::string name_;
  std::mutex mutex_;
  const std::unique_ptr<GpuCore> core_;  // Guarded by mutex_.
  EnergyCounter counter_;                // Guarded by mutex_.
  const GpuIdentity identity_;
};

}  // namespace zeus::sim
