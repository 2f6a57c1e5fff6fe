#include "zeus/session/profiled_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/client/node/open_node.h"
#include "zeus/device/node.h"

namespace zeus {
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

bool IsWanted(const std::string& device, const std::optional<std::vector<unsigned>>& gpus) {
  if (!gpus || !device.starts_with("gpu:")) return true;
  return std::ranges::any_of(
      *gpus, [&](unsigned number) { return device == fmt::format("gpu:{}", number); });
}

Status CheckAnswered(const Node& node, const ProfiledDevices::Wanted& wanted) {
  if (OfCpus(wanted.kind)) return Ok();
  for (const Absence& absence : node.absent)
    if (absence.timed_out && IsWanted(absence.what, wanted.gpus))
      return Error{ErrorCode::kUnavailable,
                   fmt::format("{}: {}: let it take longer with --driver-timeout, or leave it out "
                               "with --gpus",
                               absence.what, absence.reason)};
  return Ok();
}

}  // namespace

Result<std::unique_ptr<ProfiledDevices>> ProfiledDevices::Open(Clock& clock, const Wanted& wanted) {
  const KnobKind kind = wanted.kind;
  Surroundings surroundings = RealSurroundings(clock);
  surroundings.answer_within = wanted.driver_timeout;
  ZEUS_TRY(Node node, client::OpenNode(surroundings));
  ZEUS_RETURN_IF_ERROR(CheckAnswered(node, wanted));
  ZEUS_RETURN_IF_ERROR(CheckPresent(node, kind));
  NodeMonitorOptions choice;
  choice.cpus = OfCpus(kind);
  choice.rails = false;
  if (OfCpus(kind)) choice.gpus.emplace();
  if (wanted.gpus) choice.gpus = wanted.gpus;
  ZEUS_TRY(std::unique_ptr<NodeMonitor> monitor,
           NodeMonitor::Open(clock, std::move(node), std::move(choice)));
  ZEUS_TRY(JobKnob job, FindJobKnob(kind, *monitor, wanted.ceiling));
  return std::unique_ptr<ProfiledDevices>(
      new ProfiledDevices(std::move(monitor), std::move(job), wanted));
}

Status ProfiledDevices::CheckMeasured() const {
  const EnergyMonitor& monitor = node_->monitor();
  for (const std::size_t device : job_.devices) {
    const auto present = monitor.Now(device);
    if (!present.power.ok())
      return present.power.error().While("measure the energy of " + monitor.device_name(device));
  }
  return Ok();
}

}  // namespace zeus
