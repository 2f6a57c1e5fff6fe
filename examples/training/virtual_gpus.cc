#include <algorithm>
#include <utility>
#include <vector>

#include "examples/training/gpu_host.h"
#include "zeus/base/stepped_clock.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::examples {
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
