#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "examples/training/gpu_host.h"
#include "zeus/base/scaled_clock.h"
#include "zeus/base/ticker.h"
#include "zeus/device/node.h"
#include "zeus/device/sim/node_work.h"

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

}  // namespace zeus::examples
