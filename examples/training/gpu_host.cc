#include "examples/training/gpu_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
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

class SharedHost final : public GpuHost {
 public:
  static Result<std::unique_ptr<GpuHost>> Open(const std::string& name, unsigned count) {
    ZEUS_TRY(sim::OpenedNode opened, sim::OpenNode(name));
    auto host = std::make_unique<SharedHost>(std::move(opened));
    ZEUS_RETURN_IF_ERROR(host->Record(count));
    return std::unique_ptr<GpuHost>(std::move(host));
  }

  explicit SharedHost(sim::OpenedNode opened)
      : opened_(std::move(opened)), clock_(*opened_.clock, opened_.node.time_scale()) {}

  NodeMonitor& monitor() override { return *monitor_; }
  const sim::GpuModel& model() const override { return *model_; }
  double late_share() const override { return runs_ == 0 ? 0 : late_ / runs_; }

  Status Attach(const sim::LoadSpec& load) override {
    ZEUS_TRY(work_, sim::NodeWork::Attach(opened_.node, *opened_.clock, gpus_, load));
    return Ok();
  }

  Status Run(double steps, const std::function<void()>& compute) override {
    ZEUS_RETURN_IF_ERROR(work_->Begin(steps));
    compute();
    ZEUS_TRY(const Seconds remaining, work_->Remaining());
    ++runs_;
    if (remaining <= Seconds(0)) ++late_;
    return work_->Wait();
  }

 private:
  Status Record(unsigned count) {
    ZEUS_TRY(Node found, Discover(RealSurroundings(clock_)));
    if (found.gpus.size() < count)
      return Error{ErrorCode::kNotFound,
                   fmt::format("{} GPUs are visible, not {}: start a node with more (zeus sim "
                               "start) and eval \"$(zeus sim env)\"",
                               found.gpus.size(), count)};
    for (unsigned i = 0; i < count; ++i) ZEUS_RETURN_IF_ERROR(Find(*found.gpus[i]));
    std::vector<unsigned> positions(count);
    std::iota(positions.begin(), positions.end(), 0U);
    ZEUS_TRY(
        monitor_,
        NodeMonitor::Open(
            clock_, std::move(found),
            {.gpus = positions, .cpus = false, .rails = false, .thread = false, .share = false}));
    recorder_.emplace("recorder", [this] { return clock_.Unscaled(monitor_->monitor().Step()); });
    return Ok();
  }

  Status Find(const Gpu& visible) {
    ZEUS_TRY(const unsigned index, sim::IndexOnNode(opened_.node, visible));
    ZEUS_TRY(const auto view, opened_.node.Read(index, opened_.node.Now()));
    if (model_ != nullptr && model_ != &view.core.model())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a {} and a {} cannot share a training here: use GPUs of one model",
                               model_->id, view.core.model().id)};
    model_ = &view.core.model();
    gpus_.push_back(index);
    return Ok();
  }

  sim::OpenedNode opened_;
  ScaledClock clock_;
  const sim::GpuModel* model_ = nullptr;
  std::vector<unsigned> gpus_;  // Indices on the node.
  std::unique_ptr<sim::NodeWork> work_;
  double runs_ = 0;
  double late_ = 0;
  std::unique_ptr<NodeMonitor> monitor_;
  std::optional<Ticker> recorder_;
};

}  // namespace

Result<std::unique_ptr<GpuHost>> OpenSharedGpus(const std::string& name, unsigned count) {
  return SharedHost::Open(name, count);
}

namespace {

// Rounding errors leave less than this part of a step undone.
constexpr double kNegligibleSteps = 1e-9;

class VirtualHost final : public GpuHost {
 public:
  static Result<std::unique_ptr<GpuHost>> Open(const VirtualGpus& options) {
    auto host = std::make_unique<VirtualHost>(options);
    ZEUS_RETURN_IF_ERROR(host->Record(options));
    return std::unique_ptr<GpuHost>(std::move(host));
  }

  explicit VirtualHost(const VirtualGpus& options) : model_(*options.model) {}

  NodeMonitor& monitor() override { return *monitor_; }
  const sim::GpuModel& model() const override { return model_; }

  Status Attach(const sim::LoadSpec& load) override {
    for (sim::SimulatedGpu* const gpu : gpus_) {
      ZEUS_TRY(const std::uint32_t id, gpu->AttachLoad(load));
      loads_.push_back(id);
    }
    return Ok();
  }

  Status Run(double steps, const std::function<void()>& compute) override {
    compute();
    steps_ += steps;
    // Knobs that take effect meanwhile change the time of a step, so the rest is computed again.
    while (true) {
      ZEUS_TRY(const Seconds remaining, Remaining());
      if (remaining <= Seconds(0)) return Ok();
      clock_.Advance(remaining);
    }
  }

 private:
  Status Record(const VirtualGpus& options) {
    Node node;
    for (unsigned index = 0; index < options.count; ++index) {
      auto gpu = std::make_unique<sim::SimulatedGpu>(
          clock_, model_, sim::SimulatedGpu::Options{.seed = options.seed, .index = index});
      gpus_.push_back(gpu.get());
      node.gpus.push_back(std::move(gpu));
    }
    ZEUS_TRY(monitor_,
             NodeMonitor::Open(clock_, std::move(node), {.thread = false, .share = false}));
    clock_.Run([this] { return monitor_->monitor().Step(); });
    return Ok();
  }

  // Returns the time until the slowest GPU has done all steps, if nothing changes.
  Result<Seconds> Remaining() {
    Seconds longest{0};
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      ZEUS_TRY(const double done, gpus_[i]->StepsDone(loads_[i]));
      ZEUS_TRY(const Seconds step, gpus_[i]->StepTime(loads_[i]));
      if (steps_ - done > kNegligibleSteps) longest = std::max(longest, step * (steps_ - done));
    }
    return longest;
  }

  const sim::GpuModel& model_;
  SteppedClock clock_;
  std::unique_ptr<NodeMonitor> monitor_;
  std::vector<sim::SimulatedGpu*> gpus_;  // Owned by the monitor's node.
  std::vector<std::uint32_t> loads_;
  double steps_ = 0;
};

}  // namespace

Result<std::unique_ptr<GpuHost>> OpenVirtualGpus(const VirtualGpus& options) {
  return VirtualHost::Open(options);
}

}  // namespace zeus::examples
