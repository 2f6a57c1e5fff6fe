#include "apps/zeus/profile/profiled_devices.h"

#include <algorithm>
#include <utility>

#include "apps/zeus/lists.h"
#include "zeus/device/knob_group.h"
#include "zeus/device/node.h"
#include "zeus/monitor/profile_store.h"

namespace zeus::cli {
namespace {

bool OfCpus(KnobKind kind) { return kind == KnobKind::kCpuPowerLimit; }

Status CheckPresent(const Node& node, KnobKind kind) {
  if (OfCpus(kind) && node.cpus.empty())
    return Error{ErrorCode::kNotFound,
                 "there is no CPU energy sensor to profile with here: zeus doctor says why"};
  if (!OfCpus(kind) && node.gpus.empty())
    return Error{ErrorCode::kNotFound, "there is no GPU to profile here: zeus doctor says why"};
  return Ok();
}

}  // namespace

Result<std::unique_ptr<ProfiledDevices>> ProfiledDevices::Open(
    Clock& clock, KnobKind kind, const std::optional<std::vector<unsigned>>& gpus) {
  const Surroundings surroundings = RealSurroundings(clock);
  ZEUS_TRY(Node node, Discover(surroundings));
  ZEUS_RETURN_IF_ERROR(CheckPresent(node, kind));
  NodeMonitorOptions choice;
  choice.cpus = OfCpus(kind);
  choice.rails = false;
  choice.calibration = ProfileStore::FromEnvironment(surroundings.environment).Lookup();
  if (OfCpus(kind)) choice.gpus.emplace();
  if (gpus) {
    ZEUS_TRY(choice.gpus, GpuPositions(node, *gpus));
  }
  ZEUS_TRY(std::unique_ptr<NodeMonitor> monitor,
           NodeMonitor::Open(clock, std::move(node), std::move(choice)));
  std::unique_ptr<ProfiledDevices> devices(new ProfiledDevices(std::move(monitor)));
  ZEUS_RETURN_IF_ERROR(devices->MakeKnob(kind));
  devices->MakeMeter(kind);
  return devices;
}

Status ProfiledDevices::MakeKnob(KnobKind kind) {
  std::vector<std::unique_ptr<DeviceKnob>> members;
  if (OfCpus(kind)) {
    for (const auto& cpu : node_->node().cpus) {
      ZEUS_TRY(auto member, DeviceKnob::Of(*cpu));
      members.push_back(std::move(member));
      identities_.push_back({cpu->name(), cpu->identity().model, ""});
    }
  } else {
    for (std::size_t i = 0; i < node_->monitor().device_count(); ++i) {
      Gpu* gpu = node_->gpu(i);
      if (gpu == nullptr) continue;
      ZEUS_TRY(auto member, DeviceKnob::Of(kind, *gpu));
      members.push_back(std::move(member));
      identities_.push_back({gpu->name(), gpu->identity().model, gpu->identity().uuid});
      driver_ = gpu->identity().driver;
    }
  }
  ZEUS_TRY(knob_, KnobGroup::Of(std::move(members)));
  return Ok();
}

// Everything that is in the total: for CPUs also their memory, which works for the same program.
void ProfiledDevices::MakeMeter(KnobKind kind) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < node_->monitor().device_count(); ++i)
    if ((OfCpus(kind) || node_->gpu(i) != nullptr) && node_->monitor().device_in_total(i))
      positions.push_back(i);
  meter_ = std::make_unique<MonitorSliceMeter>(node_->monitor(), std::move(positions));
}

}  // namespace zeus::cli
