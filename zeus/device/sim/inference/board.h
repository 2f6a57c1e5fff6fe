#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/inference/physics.h"
#include "zeus/device/sim/load.h"
#include "zeus/device/sim/shared_node.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::sim {

// Simulated GPUs in their own time, wherever they live.
class CoreAccess {
 public:
  virtual ~CoreAccess() = default;
  virtual unsigned count() const = 0;
  // Shows the GPU as it was when it was last changed. `look` may advance it, up to the present.
  virtual Status Look(unsigned gpu, const std::function<Status(GpuCore&)>& look) = 0;
  // Applies a change at `time`: at the present if that is earlier, and no earlier than the last
  // change.
  virtual Status Change(unsigned gpu, Seconds time,
                        const std::function<Status(GpuCore&)>& change) = 0;
};

// GPUs of this process that were constructed at the same time of one clock; their time starts
// there. They must outlive the result.
std::unique_ptr<CoreAccess> AccessTo(std::vector<SimulatedGpu*> gpus);

// GPUs of a node, which must outlive the result.
std::unique_ptr<CoreAccess> AccessTo(SharedNode& node, std::vector<unsigned> gpus);

// The group of GPUs on which an engine runs its iterations: it is attached to each of them as a
// load for the life of this object. One owner.
class EngineBoard {
 public:
  // At a moment of the GPUs' time.
  struct State {
    bool resting = true;  // No GPU runs an iteration.
    Seconds end{};    // When the present iteration ends on the slowest GPU, or the last one ended.
    Joules engine{};  // Exact energy of this engine's iterations since it was attached.
    Joules exact{};   // Exact energy of all GPUs since they began to exist.
    Hertz clock{};    // The lowest of the GPUs' clocks.
  };

  // `load` has the memory, and the process with its heartbeats where the GPUs are shared with other
  // processes. kInvalidArgument without GPUs, or when they are of different kinds.
  static Result<std::unique_ptr<EngineBoard>> Attach(std::unique_ptr<CoreAccess> gpus,
                                                     const LoadSpec& load);
  ~EngineBoard();
  EngineBoard(const EngineBoard&) = delete;
  EngineBoard& operator=(const EngineBoard&) = delete;

  unsigned gpus() const { return static_cast<unsigned>(attachments_.size()); }
  const GpuModel& model() const { return *model_; }

  // Begins an iteration with the same work on every GPU; a GPU that is done early spins until the
  // slowest one is. Returns when it began.
  Result<Seconds> Start(Seconds time, const IterationWork& work);

  // At `time`, or when the present iteration ended if that is earlier.
  Result<State> ReadWhileIterating(Seconds time);
  // At `time`, which must not lie after the present.
  Result<State> Read(Seconds time);

  // Keeps the engine attached while it rests; needed only for the load of a process.
  Status Heartbeat(Seconds time);

 private:
  struct Attachment {
    std::uint32_t load = 0;
    Joules earlier{};  // Energy of loads that ended because heartbeats did not come in time.
    Joules seen{};     // Energy of the present load when it was last looked at.
  };

  EngineBoard(std::unique_ptr<CoreAccess> gpus, const LoadSpec& load)
      : access_(std::move(gpus)), load_(load) {}
  Status AttachTo(unsigned gpu);
  template <class Advance>
  Result<State> ReadAfter(Advance advance);
  Status Revive(GpuCore& core, Attachment& attachment);

  std::unique_ptr<CoreAccess> access_;
  LoadSpec load_;
  const GpuModel* model_ = nullptr;
  std::vector<Attachment> attachments_;
};

}  // namespace zeus::sim
