#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/step_work.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::examples {

// The simulated GPU of one stage with its clock and its monitor. After BeginToWait() it draws
// blocking power while it computes nothing. Not thread-safe.
class StageGpu {
 public:
  virtual ~StageGpu() = default;

  virtual NodeMonitor& monitor() = 0;
  virtual const sim::GpuModel& model() const = 0;

  // From now on the GPU draws blocking power, as when it waits for its peers, whenever it does not
  // compute. Must be called once, before Compute().
  virtual Status BeginToWait() = 0;

  // Returns when the GPU has done the work at the clocks that hold meanwhile.
  virtual Status Compute(const sim::StepWork& work) = 0;

  // The present time on a time axis that all stages share, and a wait until such a time.
  virtual Seconds Now() = 0;
  virtual void WaitUntil(Seconds time) = 0;

  // Returns whether time passes only in Compute() and WaitUntil(). If so, requests to other threads
  // must be waited for, or they would take effect at an arbitrary time.
  virtual bool virtual_time() const = 0;

  // Returns the true energy of the simulation, which no sensor shows.
  virtual Result<Joules> ExactEnergy() = 0;
};

// Opens a GPU that only this process sees, in virtual time. Stages agree on the time through the
// messages they exchange.
Result<std::unique_ptr<StageGpu>> OpenVirtualGpu(const sim::GpuModel& model, unsigned stage,
                                                 std::uint64_t seed);

// Opens GPU `stage` of the simulated node `name` through NVML. Its time is the node's: real time
// multiplied by the node's scale.
Result<std::unique_ptr<StageGpu>> OpenNodeGpu(const std::string& name, unsigned stage);

// Returns the power of a GPU that waits for a transfer: published measurements, or a rough share of
// the power limit for models without one.
Watts BlockingPower(const sim::GpuModel& model);

}  // namespace zeus::examples
