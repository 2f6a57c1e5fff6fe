#include "zeus/device/sim/node_work.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "zeus/base/log.h"

namespace zeus::sim {
namespace {

using namespace std::chrono_literals;

// These are intervals of real time.
constexpr Seconds kHeartbeat = 100ms;
constexpr Seconds kLongestSleep = 5ms;  // A change of a knob moves the end of the work.
constexpr Seconds kShortestSleep = 1us;
constexpr Seconds kLongestWait = 1h;

}  // namespace

Result<OpenedNode> OpenNode(std::string_view name) {
  auto clock = std::make_unique<SystemClock>();
  ZEUS_TRY(const auto directory, NodeDirectory::FromEnvironment(*clock));
  ZEUS_TRY(SharedNode node, directory.Open(name, Access::kWrite));
  return OpenedNode{.clock = std::move(clock), .node = std::move(node)};
}

Result<unsigned> IndexOnNode(const SharedNode& node, const Gpu& visible) {
  for (unsigned index = 0; index < node.gpu_count(); ++index) {
    ZEUS_TRY(const auto view, node.Read(index, node.Now()));
    if (view.core.uuid() == visible.identity().uuid) return index;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{} is not a GPU of the simulated node \"{}\": eval \"$(zeus sim env "
                           "--name {})\"",
                           visible.name(), node.name(), node.name())};
}

NodeWork::NodeWork(SharedNode& node, Clock& clock, const LoadSpec& load)
    : node_(node), clock_(clock), load_(load), last_beat_(clock.Now()) {
  if (!endless()) return;
  load_.pid = ::getpid();
  load_.heartbeat_timeout *= node.time_scale();
}

Result<std::unique_ptr<NodeWork>> NodeWork::Attach(SharedNode& node, Clock& clock,
                                                   const std::vector<unsigned>& gpus,
                                                   const LoadSpec& load) {
  if (gpus.empty())
    return Error{ErrorCode::kInvalidArgument, "work needs a GPU: name one at least"};
  // If one GPU fails, the destructor detaches the load from the GPUs before it.
  std::unique_ptr<NodeWork> work(new NodeWork(node, clock, load));
  for (const unsigned gpu : gpus) ZEUS_RETURN_IF_ERROR(work->AttachTo(gpu));
  return work;
}

NodeWork::~NodeWork() {
  heartbeat_.reset();
  // A load that cannot be detached here ends when its heartbeats stop.
  for (const Attachment& gpu : gpus_)
    (void)node_.Update(gpu.index, [&](GpuCore& core) {
      core.DetachLoad(gpu.load);
      return Ok();
    });
}

bool NodeWork::endless() const {
  return !std::isfinite(load_.steps) && !std::isfinite(load_.duration.count());
}

Status NodeWork::AttachTo(unsigned gpu) {
  for (const Attachment& earlier : gpus_)
    if (earlier.index == gpu)
      return Error{ErrorCode::kInvalidArgument, fmt::format("GPU {} was named twice", gpu)};
  Attachment attachment{.index = gpu};
  ZEUS_RETURN_IF_ERROR(node_.Update(gpu, [&](GpuCore& core) -> Status {
    ZEUS_TRY(attachment.load, core.AttachLoad(load_));
    return Ok();
  }));
  gpus_.push_back(attachment);
  return Ok();
}

void NodeWork::KeepAlive() {
  heartbeat_.emplace("heartbeat", [this] {
    const std::lock_guard lock(mutex_);
    if (const Status beaten = BeatIfDue(); !beaten.ok()) log::Debug("{}", beaten.error().message);
    return clock_.Now() + kHeartbeat;
  });
}

Status NodeWork::Begin(double steps) {
  const std::lock_guard lock(mutex_);
  asked_ = steps;
  ZEUS_RETURN_IF_ERROR(BeatIfDue());
  for (Attachment& gpu : gpus_) {
    ZEUS_TRY(const auto view, node_.Read(gpu.index, node_.Now()));
    ZEUS_TRY(const double done, view.core.StepsDone(gpu.load));
    gpu.target = done + steps;
  }
  return Ok();
}

Result<Seconds> NodeWork::Remaining() {
  const std::lock_guard lock(mutex_);
  if (node_.stopped())
    return Error{ErrorCode::kUnavailable,
                 fmt::format("node \"{}\" was stopped under its work", node_.name())};
  ZEUS_RETURN_IF_ERROR(BeatIfDue());
  Seconds longest{0};
  for (const Attachment& gpu : gpus_) {
    ZEUS_TRY(const Seconds remaining, RemainingOn(gpu));
    longest = std::max(longest, remaining);
  }
  return longest;
}

Result<Seconds> NodeWork::RemainingOn(const Attachment& gpu) const {
  const Seconds now = node_.Now();
  ZEUS_TRY(const auto view, node_.Read(gpu.index, now));
  if (!endless()) {
    const auto end = view.core.PredictEnd(gpu.load);
    return end.ok() ? end.value() - now : Seconds(0);
  }
  ZEUS_TRY(const double done, view.core.StepsDone(gpu.load));
  ZEUS_TRY(const Seconds step, view.core.StepTime(gpu.load));
  return step * (gpu.target - done);
}

Result<bool> NodeWork::WaitFor(Seconds longest) {
  const TimePoint deadline = clock_.Now() + std::min(longest, kLongestWait);
  while (true) {
    ZEUS_TRY(const Seconds remaining, Remaining());
    if (remaining <= Seconds(0)) return true;
    const TimePoint now = clock_.Now();
    if (now >= deadline) return false;
    const Seconds sleep = std::clamp(remaining / node_.time_scale(), kShortestSleep, kLongestSleep);
    clock_.SleepUntil(std::min(deadline, now + sleep));
  }
}

Status NodeWork::Wait() {
  while (true) {
    ZEUS_TRY(const bool done, WaitFor(kLongestWait));
    if (done) return Ok();
  }
}

Status NodeWork::BeatIfDue() {
  if (!endless()) return Ok();
  const TimePoint now = clock_.Now();
  if (now < last_beat_ + kHeartbeat) return Ok();
  last_beat_ = now;
  for (Attachment& gpu : gpus_)
    ZEUS_RETURN_IF_ERROR(node_.Update(gpu.index, [&](GpuCore& core) -> Status {
      ZEUS_TRY(const std::uint32_t load, core.Heartbeat(gpu.load, load_));
      // This process was stopped for so long that the load ended: it begins this run again.
      if (load != gpu.load) gpu.target = asked_;
      gpu.load = load;
      return Ok();
    }));
  return Ok();
}

}  // namespace zeus::sim
