#include <algorithm>
#include <chrono>
#include <utility>

#include "examples/pipeline/stage_gpu.h"
#include "zeus/base/stepped_clock.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::examples {
namespace {

using namespace std::chrono_literals;

// Shorter times are rounding errors: a virtual clock may not move at all when advanced by them.
constexpr Seconds kShortestAdvance = 1ns;

// The end of the work is computed again after this time, because a requested clock that takes
// effect meanwhile moves it.
constexpr Seconds kClockPollPeriod = 2ms;

class VirtualGpu final : public StageGpu {
 public:
  static Result<std::unique_ptr<StageGpu>> Open(const sim::GpuModel& model, unsigned stage,
                                                std::uint64_t seed) {
    auto host = std::make_unique<VirtualGpu>();
    auto gpu = std::make_unique<sim::SimulatedGpu>(
        host->clock_, model, sim::SimulatedGpu::Options{.seed = seed, .index = stage});
    host->gpu_ = gpu.get();
    Node node;
    node.gpus.push_back(std::move(gpu));
    ZEUS_TRY(host->monitor_,
             NodeMonitor::Open(host->clock_, std::move(node), {.thread = false, .share = false}));
    host->model_ = &model;
    host->clock_.Run([monitor = host->monitor_.get()] { return monitor->monitor().Step(); });
    return std::unique_ptr<StageGpu>(std::move(host));
  }

  NodeMonitor& monitor() override { return *monitor_; }
  const sim::GpuModel& model() const override { return *model_; }

  Status BeginToWait() override {
    sim::LoadSpec waiting;
    waiting.demand = BlockingPower(*model_);
    waiting.waits = true;
    ZEUS_RETURN_IF_ERROR(gpu_->AttachLoad(waiting));
    return Ok();
  }

  Status Compute(const sim::StepWork& work) override {
    sim::LoadSpec load;
    load.work = work;
    load.steps = 1;
    ZEUS_TRY(const std::uint32_t id, gpu_->AttachLoad(load));
    for (auto left = gpu_->TimeLeft(id); left.ok(); left = gpu_->TimeLeft(id))
      clock_.Advance(std::clamp(left.value(), kShortestAdvance, kClockPollPeriod));
    return Ok();
  }

  Seconds Now() override { return clock_.Now().time_since_epoch(); }
  void WaitUntil(Seconds time) override {
    if (time > Now()) clock_.SleepUntil(TimePoint(time));
  }
  bool virtual_time() const override { return true; }
  Result<Joules> ExactEnergy() override { return gpu_->ExactEnergy(); }

 private:
  SteppedClock clock_;
  const sim::GpuModel* model_ = nullptr;
  std::unique_ptr<NodeMonitor> monitor_;
  sim::SimulatedGpu* gpu_ = nullptr;  // Owned by the monitor's node.
};

}  // namespace

Result<std::unique_ptr<StageGpu>> OpenVirtualGpu(const sim::GpuModel& model, unsigned stage,
                                                 std::uint64_t seed) {
  return VirtualGpu::Open(model, stage, seed);
}

Watts BlockingPower(const sim::GpuModel& model) {
  if (model.id == "A100") return Watts(83.64);
  if (model.id == "A40") return Watts(70.38);
  return model.idle_power + (model.limit_range.max - model.idle_power) * 0.1;
}

}  // namespace zeus::examples
