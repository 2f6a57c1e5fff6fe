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

// The simulated GPU of one stage, the clock that rules it and the monitor that watches it. While it
// computes nothing it waits for its peers, at blocking power, once told to. One owner.
class StageGpu {
 public:
  virtual ~StageGpu() = default;

  virtual NodeMonitor& monitor() = 0;
  virtual const sim::GpuModel& model() const = 0;

  // From now on the GPU is not idle when it computes nothing. Once, before anything else.
  virtual Status BeginToWait() = 0;

  // Returns when the GPU has done the work, at whatever clock holds meanwhile.
  virtual Status Compute(const sim::StepWork& work) = 0;

  // The present in a time that all stages share, and waiting until it.
  virtual Seconds Now() = 0;
  virtual void WaitUntil(Seconds time) = 0;

  // Whether time passes only in Compute() and WaitUntil(): then what another thread was asked to do
  // must be waited for.
  virtual bool virtual_time() const = 0;

  // What no sensor shows.
  virtual Result<Joules> ExactEnergy() = 0;
};

// Of this process alone, in virtual time. Stages agree on the time by what they send each other.
Result<std::unique_ptr<StageGpu>> OpenVirtualGpu(const sim::GpuModel& model, unsigned stage,
                                                 std::uint64_t seed);

// GPU `stage` of the simulated node `name`, through NVML, in the node's time: real time times its
// scale.
Result<std::unique_ptr<StageGpu>> OpenNodeGpu(const std::string& name, unsigned stage);

// Published measurements of stages that wait for a transfer; a rough share of the limit for models
// without one.
Watts BlockingPower(const sim::GpuModel& model);

}  // namespace zeus::examples
