#pragma once

#include <functional>
#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/load.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::examples {

// The simulated GPUs that a training runs on, the clock that rules them, and the monitor that
// watches them. One owner.
class GpuHost {
 public:
  virtual ~GpuHost() = default;

  virtual NodeMonitor& monitor() = 0;
  // All GPUs are of one model.
  virtual const sim::GpuModel& model() const = 0;

  // From now on every GPU runs this. Once.
  virtual Status Attach(const sim::LoadSpec& load) = 0;

  // Calls `compute` on this CPU while the GPUs do so many steps of what was attached. Returns when
  // both are done. A GPU that is ahead of the slowest one spins, as it does when it waits for the
  // gradients of the others.
  virtual Status Run(double steps, const std::function<void()>& compute) = 0;

  // The share of the runs in which this CPU was slower than the GPUs, so that they did more than
  // was asked for. Never with virtual time.
  virtual double late_share() const { return 0; }
};

// GPUs of this process in virtual time: `compute` takes none. Same seed, same readings.
struct VirtualGpus {
  const sim::GpuModel* model;
  unsigned count = 1;
  std::uint64_t seed = 1;
};
Result<std::unique_ptr<GpuHost>> OpenVirtualGpus(const VirtualGpus& options);

// The first `count` GPUs that NVML shows, which must be of the simulated node `name` (see
// `zeus sim env`), in the node's time.
Result<std::unique_ptr<GpuHost>> OpenSharedGpus(const std::string& name, unsigned count);

}  // namespace zeus::examples
