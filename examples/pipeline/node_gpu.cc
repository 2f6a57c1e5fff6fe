#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "examples/pipeline/stage_gpu.h"
#include "zeus/base/log.h"
#include "zeus/base/scaled_clock.h"
#include "zeus/base/ticker.h"
#include "zeus/device/node.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::examples {
namespace {

using namespace std::chrono_literals;

// Of real time.
constexpr Seconds kHeartbeat = 100ms;
constexpr Seconds kLookAgain = 5ms;  // A change of the clock moves the end of the work.

class NodeGpu final : public StageGpu {
 public:
  static Result<std::unique_ptr<StageGpu>> Open(const std::string& name, unsigned stage) {
    auto system = std::make_unique<SystemClock>();
    ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(*system));
    ZEUS_TRY(sim::SharedNode node, directory.Open(name, sim::Access::kWrite));
    auto gpu = std::make_unique<NodeGpu>(std::move(system), std::move(node));
    ZEUS_RETURN_IF_ERROR(gpu->Record(stage));
    return std::unique_ptr<StageGpu>(std::move(gpu));
  }

  NodeGpu(std::unique_ptr<SystemClock> system, sim::SharedNode node)
      : system_(std::move(system)), node_(std::move(node)), clock_(*system_, node_.time_scale()) {}

  ~NodeGpu() override {
    if (!heartbeat_) return;
    heartbeat_.reset();
    // What fails here ends by itself when the heartbeats do.
    (void)node_.Update(index_, [this](sim::GpuCore& core) {
      core.DetachLoad(waiting_id_);
      return Ok();
    });
  }

  NodeMonitor& monitor() override { return *monitor_; }
  const sim::GpuModel& model() const override { return *model_; }

  Status BeginToWait() override {
    waiting_.demand = BlockingPower(*model_);
    waiting_.waits = true;
    waiting_.pid = ::getpid();
    waiting_.heartbeat_timeout *= node_.time_scale();
    ZEUS_RETURN_IF_ERROR(node_.Update(index_, [this](sim::GpuCore& core) -> Status {
      ZEUS_TRY(waiting_id_, core.AttachLoad(waiting_));
      return Ok();
    }));
    heartbeat_.emplace("heartbeat", [this] { return Beat(); });
    return Ok();
  }

  Status Compute(const sim::StepWork& work) override {
    sim::LoadSpec load;
    load.work = work;
    load.steps = 1;
    std::uint32_t id = 0;
    ZEUS_RETURN_IF_ERROR(node_.Update(index_, [&](sim::GpuCore& core) -> Status {
      ZEUS_TRY(id, core.AttachLoad(load));
      return Ok();
    }));
    for (;;) {
      if (node_.stopped())
        return Error{ErrorCode::kUnavailable,
                     fmt::format("node \"{}\" was stopped under the training", node_.name())};
      const Seconds now = node_.Now();
      ZEUS_TRY(const auto view, node_.Read(index_, now));
      const auto end = view.core.EndOf(id);
      if (!end.ok()) return Ok();
      clock_.SleepFor(std::min(end.value() - now, kLookAgain * node_.time_scale()));
    }
  }

  Seconds Now() override { return node_.Now(); }
  void WaitUntil(Seconds) override {}  // It passed while the message was on its way.
  bool virtual_time() const override { return false; }
  Result<Joules> ExactEnergy() override {
    ZEUS_TRY(const auto view, node_.Read(index_, node_.Now()));
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
    ZEUS_RETURN_IF_ERROR(Find(*found.gpus[stage]));
    ZEUS_TRY(monitor_, NodeMonitor::Open(clock_, std::move(found),
                                         {.gpus = std::vector<unsigned>{stage},
                                          .cpus = false,
                                          .rails = false,
                                          .thread = false,
                                          .share = false}));
    recorder_.emplace("recorder", [this] { return clock_.Unscaled(monitor_->monitor().Step()); });
    return Ok();
  }

  // What NVML shows may be in another order, or another node.
  Status Find(const Gpu& visible) {
    for (unsigned index = 0; index < node_.gpu_count(); ++index) {
      ZEUS_TRY(const auto view, node_.Read(index, node_.Now()));
      if (view.core.uuid() != visible.identity().uuid) continue;
      model_ = &view.core.model();
      index_ = index;
      return Ok();
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is not a GPU of the simulated node \"{}\": eval \"$(zeus sim env "
                             "--name {})\"",
                             visible.name(), node_.name(), node_.name())};
  }

  TimePoint Beat() {
    const Status beaten = node_.Update(index_, [this](sim::GpuCore& core) -> Status {
      ZEUS_TRY(waiting_id_, core.Heartbeat(waiting_id_, waiting_));
      return Ok();
    });
    if (!beaten.ok()) log::Debug("{}", beaten.error().message);
    return system_->Now() + kHeartbeat;
  }

  std::unique_ptr<SystemClock> system_;  // The node has a pointer to it.
  sim::SharedNode node_;
  ScaledClock clock_;
  const sim::GpuModel* model_ = nullptr;
  unsigned index_ = 0;
  sim::LoadSpec waiting_;
  std::uint32_t waiting_id_ = 0;  // Of the heartbeat's thread, once it runs.
  std::unique_ptr<NodeMonitor> monitor_;
  std::optional<Ticker> recorder_;
  std::optional<Ticker> heartbeat_;
};

}  // namespace

Result<std::unique_ptr<StageGpu>> OpenNodeGpu(const std::string& name, unsigned stage) {
  return NodeGpu::Open(name, stage);
}

}  // namespace zeus::examples
