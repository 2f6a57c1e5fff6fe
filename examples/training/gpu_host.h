#pragma once

#include <functional>
#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/load.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::examples {

// The simulated GPUs of a training with their clock and their monitor. Not thread-safe.
class GpuHost {
 public:
  virtual ~GpuHost() = default;

  virtual NodeMonitor& monitor() = 0;
  // The model of all GPUs.
  virtual const sim::GpuModel& model() const = 0;

  // Starts this load on every GPU. May be called once.
  virtual Status Attach(const sim::LoadSpec& load) = 0;

  // Calls `compute` on this CPU while the GPUs perform `steps` steps of the attached load. Returns
  // when both are done. A GPU that is ahead of the slowest one spins, as if it waited for the
  // gradients of the others.
  virtual Status Run(double steps, const std::function<void()>& compute) = 0;

  // Returns the share of calls of Run() in which this CPU was slower than the GPUs, so that they
  // did more steps than asked for. Always 0 in virtual time.
  virtual double late_share() const { return 0; }
};

// GPUs that only this process sees, in virtual time: `compute` takes none of it. The same seed
// gives the same readings.
struct VirtualGpus {
  const sim::GpuModel* model;
  unsigned count = 1;
  std::uint64_t seed = 1;
};
Result<std::unique_ptr<GpuHost>> OpenVirtualGpus(const VirtualGpus& options);

// Opens the first `count` GPUs that NVML shows, in the node's time. They must belong to the
// simulated node `name` (see `zeus sim env`).
Result<std::unique_ptr<GpuHost>> OpenSharedGpus(const std::string& name, unsigned count);

}  // namespace zeus::examples
