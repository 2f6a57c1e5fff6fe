#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "examples/training/gpu_host.h"
#include "zeus/base/scaled_clock.h"
#include "zeus/base/ticker.h"
#include "zeus/device/node.h"
#include "zeus/device/sim/node_directory.h"

namespace zeus::examples {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kHeartbeat = 100ms;  // Of real time.

// One GPU of the node and what this process runs on it.
struct Attachment {
  unsigned index;
  std::uint32_t load = 0;
  double target = 0;  // Steps of the load when this run is done.
};

class SharedHost final : public GpuHost {
 public:
  static Result<std::unique_ptr<GpuHost>> Open(const std::string& name, unsigned count) {
    auto system = std::make_unique<SystemClock>();
    ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(*system));
    ZEUS_TRY(sim::SharedNode node, directory.Open(name, sim::Access::kWrite));
    auto host = std::make_unique<SharedHost>(std::move(system), std::move(node));
    ZEUS_RETURN_IF_ERROR(host->Record(count));
    return std::unique_ptr<GpuHost>(std::move(host));
  }

  SharedHost(std::unique_ptr<SystemClock> system, sim::SharedNode node)
      : system_(std::move(system)), node_(std::move(node)), clock_(*system_, node_.time_scale()) {}

  ~SharedHost() override {
    // What fails here ends by itself when the heartbeats do.
    for (const Attachment& gpu : gpus_)
      (void)node_.Update(gpu.index, [&](sim::GpuCore& core) {
        core.DetachLoad(gpu.load);
        return Ok();
      });
  }

  NodeMonitor& monitor() override { return *monitor_; }
  const sim::GpuModel& model() const override { return *model_; }
  double late_share() const override { return runs_ == 0 ? 0 : late_ / runs_; }

  Status Attach(const sim::LoadSpec& load) override {
    load_ = load;
    load_.pid = ::getpid();
    load_.heartbeat_timeout *= node_.time_scale();
    for (Attachment& gpu : gpus_)
      ZEUS_RETURN_IF_ERROR(node_.Update(gpu.index, [&](sim::GpuCore& core) -> Status {
        ZEUS_TRY(gpu.load, core.AttachLoad(load_));
        return Ok();
      }));
    last_beat_ = system_->Now();
    return Ok();
  }

  Status Run(double steps, const std::function<void()>& compute) override {
    asked_ = steps;
    ZEUS_RETURN_IF_ERROR(BeatIfDue());
    for (Attachment& gpu : gpus_) {
      ZEUS_TRY(const Progress progress, Look(gpu));
      gpu.target = progress.done + steps;
    }
    compute();
    ZEUS_RETURN_IF_ERROR(BeatIfDue());
    ZEUS_TRY(Seconds remaining, Remaining());
    ++runs_;
    if (remaining <= Seconds(0)) ++late_;
    while (remaining > Seconds(0)) {
      clock_.SleepFor(std::min(remaining, kHeartbeat * node_.time_scale()));
      ZEUS_RETURN_IF_ERROR(BeatIfDue());
      ZEUS_TRY(remaining, Remaining());
    }
    return Ok();
  }

 private:
  struct Progress {
    double done;
    Seconds step;
  };

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

  // What NVML shows may be in another order, or another node.
  Status Find(const Gpu& visible) {
    for (unsigned index = 0; index < node_.gpu_count(); ++index) {
      ZEUS_TRY(const auto view, node_.Read(index, node_.Now()));
      if (view.core.uuid() != visible.identity().uuid) continue;
      if (model_ != nullptr && model_ != &view.core.model())
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("a {} and a {} cannot share a training here: use GPUs of one model",
                        model_->id, view.core.model().id)};
      model_ = &view.core.model();
      gpus_.push_back({.index = index});
      return Ok();
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is not a GPU of the simulated node \"{}\": eval \"$(zeus sim env "
                             "--name {})\"",
                             visible.name(), node_.name(), node_.name())};
  }

  Result<Progress> Look(const Attachment& gpu) {
    if (node_.stopped())
      return Error{ErrorCode::kUnavailable,
                   fmt::format("node \"{}\" was stopped under the training", node_.name())};
    ZEUS_TRY(const auto view, node_.Read(gpu.index, node_.Now()));
    ZEUS_TRY(const double done, view.core.StepsDone(gpu.load));
    ZEUS_TRY(const Seconds step, view.core.StepTime(gpu.load));
    return Progress{.done = done, .step = step};
  }

  // Until the slowest GPU has done its steps, if nothing changes.
  Result<Seconds> Remaining() {
    Seconds longest{0};
    for (const Attachment& gpu : gpus_) {
      ZEUS_TRY(const Progress progress, Look(gpu));
      longest = std::max(longest, progress.step * (gpu.target - progress.done));
    }
    return longest;
  }

  Status BeatIfDue() {
    const TimePoint now = system_->Now();
    if (now < last_beat_ + kHeartbeat) return Ok();
    last_beat_ = now;
    for (Attachment& gpu : gpus_)
      ZEUS_RETURN_IF_ERROR(node_.Update(gpu.index, [&](sim::GpuCore& core) -> Status {
        ZEUS_TRY(const std::uint32_t load, core.Heartbeat(gpu.load, load_));
        // This process was stopped for so long that the load ended: it begins this run again.
        if (load != gpu.load) gpu.target = asked_;
        gpu.load = load;
        return Ok();
      }));
    return Ok();
  }

  std::unique_ptr<SystemClock> system_;  // The node has a pointer to it.
  sim::SharedNode node_;
  ScaledClock clock_;
  const sim::GpuModel* model_ = nullptr;
  std::vector<Attachment> gpus_;
  sim::LoadSpec load_;
  TimePoint last_beat_{};
  double asked_ = 0;  // Steps of this run.
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
