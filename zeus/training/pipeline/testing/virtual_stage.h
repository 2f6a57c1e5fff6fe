#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "zeus/base/stepped_clock.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/training/callback.h"

namespace zeus::testing {

// A stage of a pipeline on a simulated A100 in virtual time.
class VirtualStage {
 public:
  static constexpr Watts kBlocking{83.64};

  explicit VirtualStage(std::uint64_t seed = 1) {
    auto owned = std::make_unique<sim::SimulatedGpu>(clock, sim::testing::Model("A100"),
                                                     sim::SimulatedGpu::Options{.seed = seed});
    gpu = owned.get();
    sim::LoadSpec waiting = sim::testing::Draw(kBlocking);
    waiting.waits = true;
    (void)gpu->AttachLoad(waiting).value();
    Node node;
    node.gpus.push_back(std::move(owned));
    monitor = NodeMonitor::Open(clock, std::move(node), {.thread = false, .share = false}).value();
    clock.Run([this] { return monitor->monitor().Step(); });
    clock.Advance(Seconds(5));
  }

  // Returns work that takes `time` at the highest clock, a tenth of it for memory.
  static sim::StepWork Work(Seconds time) {
    return {.operations = 0.9 * 156e12 * time.count(), .bytes = 0.1 * 1244e9 * time.count()};
  }

  void Compute(Seconds time) {
    sim::LoadSpec load;
    load.work = Work(time);
    load.steps = 1;
    const std::uint32_t id = gpu->AttachLoad(load).value();
    // The end of the step moves when the GPU adopts a new clock, so time advances in small steps.
    for (auto left = gpu->TimeLeft(id); left.ok(); left = gpu->TimeLeft(id))
      clock.Advance(std::clamp(left.value(), Seconds(1e-9), Seconds(0.002)));
  }

  // Returns the prediction for a warm GPU.
  static sim::OperatingPoint PointAt(Hertz clock, Seconds time) {
    return sim::PredictStep(sim::testing::Model("A100"), Work(time),
                            {.power_limit = Watts(400), .clock_cap = clock})
        .value();
  }

  SteppedClock clock;
  sim::SimulatedGpu* gpu = nullptr;
  std::unique_ptr<NodeMonitor> monitor;
};

}  // namespace zeus::testing
