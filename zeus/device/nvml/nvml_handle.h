#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "zeus/base/fork.h"
#include "zeus/base/result.h"
#include "zeus/device/energy_counter.h"
#include "zeus/device/gpu.h"
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
// lock of its own (see NvmlSession). Thread-safe.
class NvmlHandle {
 public:
  // What belongs to one process.
  struct Process {
    unsigned generation;
    Device device;
    std::mutex energy_mutex;  // Hold it from before the counter is read until Advance() returns.
    ForkableCounter energy;
    std::unique_ptr<Process> parent;

    Process(unsigned of_generation, Device of_device)
        : generation(of_generation), device(of_device) {}
    Process(unsigned of_generation, Device of_device, Process& forked_from)
        : generation(of_generation),
          device(of_device),
          energy(forked_from.energy),
          parent(&forked_from) {}
  };

  NvmlHandle(std::shared_ptr<NvmlSession> session, Device device, const GpuIdentity& identity);
  ~NvmlHandle();
  NvmlHandle(const NvmlHandle&) = delete;
  NvmlHandle& operator=(const NvmlHandle&) = delete;

  const NvmlApi& api() const { return session_->api(); }

  // That of the calling process; valid as long as this object.
  Result<Process*> Current() {
    Process* process = process_.load(std::memory_order_acquire);
    if (process->generation == ForkGeneration()) return process;
    return AfterFork(process);
  }

 private:
  Result<Process*> AfterFork(Process* of_parent);
  Return FindDevice(Device* device) const;

  const std::shared_ptr<NvmlSession> session_;
  const std::string uuid_;
  const std::string pci_address_;
  std::atomic<Process*> process_;
};

}  // namespace zeus::nvml
