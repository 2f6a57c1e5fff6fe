#include "examples/pipeline/stage_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/stepped_clock.h"
#include "zeus/base/ticker.h"
#include "zeus/device/node.h"
#include "zeus/device/sim/node_work.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::examples {
namespace {

class NodeGpu final : public StageGpu {
 public:
  static Result<std::unique_ptr<StageGpu>> Open(const std::string& name, unsigned stage) {
    ZEUS_TRY(sim::OpenedNode opened, sim::OpenNode(name));
    auto gpu = std::make_unique<NodeGpu>(std::move(opened));
    ZEUS_RETURN_IF_ERROR(gpu->Record(stage));
    return std::unique_ptr<StageGpu>(std::move(gpu));
  }

  explicit NodeGpu(sim::OpenedNode opened)
      : opened_(std::move(opened)), clock_(*opened_.clock, opened_.node.time_scale()) {}

  NodeMonitor& monitor() override { return *monitor_; }
  const sim::GpuModel& model() const override { return *model_; }

  Status BeginToWait() override {
    sim::LoadSpec load;
    load.demand = BlockingPower(*model_);
    load.waits = true;
    ZEUS_TRY(waiting_, Attach(load));
    waiting_->KeepAlive();
    return Ok();
  }

  Status Compute(const sim::StepWork& work) override {
    sim::LoadSpec load;
    load.work = work;
    load.steps = 1;
    ZEUS_TRY(const auto computing, Attach(load));
    return computing->Wait();
  }

  Seconds Now() override { return opened_.node.Now(); }
  void WaitUntil(Seconds) override {}  // Real time has passed while the message was on its way.
  bool virtual_time() const override { return false; }
  Result<Joules> ExactEnergy() override {
    ZEUS_TRY(const auto view, opened_.node.Read(index_, opened_.node.Now()));
    return view.core.exact_energy();
  }

 private:
  Status Record(unsigned stage) {
    ZEUS_TRY(Node found, Discover(RealSurroundings(clock_)));
    if (stage >= found.gpus.size())
      return Error{
          ErrorCode::kNotFound,
          fmt::format("stage {} has no GPU: start a node with more of them (zeus sim start "
                      "--gpus 4xA100) and eval \"$(zeus sim env)\"",
                      stage)};
    ZEUS_TRY(index_, sim::IndexOnNode(opened_.node, *found.gpus[stage]));
    ZEUS_TRY(const auto view, opened_.node.Read(index_, opened_.node.Now()));
    model_ = &view.core.model();
    ZEUS_TRY(monitor_, NodeMonitor::Open(clock_, std::move(found),
                                         {.gpus = std::vector<unsigned>{stage},
                                          .cpus = false,
                                          .rails = false,
                                          .thread = false,
                                          .share = false}));
    recorder_.emplace("recorder", [this] { return clock_.Unscaled(monitor_->monitor().Step()); });
    return Ok();
  }

  Result<std::unique_ptr<sim::NodeWork>> Attach(const sim::LoadSpec& load) {
    return sim::NodeWork::Attach(opened_.node, *opened_.clock, {index_}, load);
  }

  sim::OpenedNode opened_;
  ScaledClock clock_;
  const sim::GpuModel* model_ = nullptr;
  unsigned index_ = 0;
  std::unique_ptr<sim::NodeWork> waiting_;
  std::unique_ptr<NodeMonitor> monitor_;
  std::optional<Ticker> recorder_;
};

}  // namespace

Result<std::unique_ptr<StageGpu>> OpenNodeGpu(const std::string& name, unsigned stage) {
  return NodeGpu::Open(name, stage);
}

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
