#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "examples/pipeline/stage_gpu.h"
#include "zeus/base/scaled_clock.h"
#include "zeus/base/ticker.h"
#include "zeus/device/node.h"
#include "zeus/device/sim/node_work.h"

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

}  // namespace zeus::examples
