#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/device/driver_access.h"
#include "zeus/device/energy_counter.h"
#include "zeus/device/gpu.h"
#include "zeus/device/nvml/nvml_readers.h"
#include "zeus/device/nvml/nvml_session.h"

namespace zeus::nvml {

// An energy counter whose state is whole at every instant: a process that is forked in the middle
// of Advance() starts from the state before it. The owner locks, as for EnergyCounter.
class ForkableCounter {
 public:
  ForkableCounter() { states_[0].emplace(); }
  ForkableCounter(const ForkableCounter& other) {
    states_[0].emplace(*other.states_[other.current_]);
  }
  ForkableCounter& operator=(const ForkableCounter&) = delete;

  EnergyCounter::Total Advance(std::uint64_t raw);

 private:
  std::array<std::optional<EnergyCounter>, 2> states_;
  std::atomic<unsigned> current_{0};
};

// The handle of one device and its energy counter, both good after fork(): the child initialises
// NVML, asks for the device again by its UUID, and goes on counting where the parent was, with a
// lock of its own (see NvmlSession). The same after NVML was closed. Thread-safe.
class NvmlHandle {
 public:
  // State that a fork()ed child must not share with its parent.
  struct Process {
    unsigned generation;
    std::atomic<Device> device;
    std::atomic<unsigned> closings;  // NvmlSession::closings() for which the device is good.
    std::mutex energy_mutex;  // Hold it from before the counter is read until Advance() returns.
    ForkableCounter energy;
    std::unique_ptr<Process> parent;

    Process(unsigned of_generation, Device of_device, unsigned good_for)
        : generation(of_generation), device(of_device), closings(good_for) {}
    Process(unsigned of_generation, Device of_device, unsigned good_for, Process& forked_from)
        : generation(of_generation),
          device(of_device),
          closings(good_for),
          energy(forked_from.energy),
          parent(&forked_from) {}
  };

  // The state of the calling process. The device may be used as long as this lives.
  struct Held {
    NvmlSession::Use use;
    Process* process = nullptr;
  };

  NvmlHandle(std::shared_ptr<NvmlSession> session, Device device, const GpuIdentity& identity);
  ~NvmlHandle();
  NvmlHandle(const NvmlHandle&) = delete;
  NvmlHandle& operator=(const NvmlHandle&) = delete;

  const NvmlApi& api() const { return session_->api(); }

  // kUnavailable between LetGo() and TakeBack().
  Result<Held> Current();

  // See DriverAccess.
  Status LetGo();
  void TakeBack() { let_go_ = false; }

 private:
  Result<Process*> AfterFork(Process* of_parent);
  Status AfterClosing(Process& process) const;
  Return FindDevice(Device* device) const;

  const std::shared_ptr<NvmlSession> session_;
  const std::string uuid_;
  const std::string pci_address_;
  std::atomic<Process*> process_;
  std::atomic<bool> let_go_{false};
};

// One NVIDIA board. Which sensors it has is found out when it is opened and remembered with the
// reason; knobs are read back after each change. Thread-safe, also after fork().
class NvmlGpu final : public Gpu, public DriverAccess {
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
  Result<std::vector<ProcessSample>> ProcessSamples(WallTime since) override;
  Result<std::vector<std::string>> Partitions() override;

  Result<PowerLimit> CurrentPowerLimit() override;
  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;

  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override;
  Result<Hertz> CurrentClock(ClockDomain domain) override;
  Status LockClockWithoutJournal(ClockDomain domain, ClockRange range) override;
  Status ResetClock(ClockDomain domain) override;

  Result<Persistence> CurrentPersistence() override;
  Status SetPersistence(Persistence mode) override;

  Status LetGo() override { return handle_.LetGo(); }
  void TakeBack() override { handle_.TakeBack(); }

 private:
  // A target that may be used as long as this lives.
  struct HeldTarget : Target {
    NvmlSession::Use use;
  };

  NvmlGpu(std::shared_ptr<NvmlSession> session, Probe& probe, std::string name,
          GpuIdentity identity);

  Result<HeldTarget> CurrentTarget();
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
