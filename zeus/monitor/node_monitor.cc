#include "zeus/monitor/node_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace zeus {
namespace {

Status CheckGpus(const Node& node, const std::vector<unsigned>& wanted) {
  for (const unsigned index : wanted) {
    if (index < node.gpus.size()) continue;
    if (node.gpus.empty())
      return Error{
          ErrorCode::kNotFound,
          fmt::format("there is no GPU {}: no GPU was found here (see zeus doctor)", index)};
    return Error{ErrorCode::kNotFound,
                 fmt::format("there is no GPU {}: this machine shows GPUs 0 to {}", index,
                             node.gpus.size() - 1)};
  }
  return Ok();
}

}  // namespace

Result<std::unique_ptr<NodeMonitor>> NodeMonitor::Open(Clock& clock, Node node,
                                                       NodeMonitorOptions options) {
  if (options.gpus) ZEUS_RETURN_IF_ERROR(CheckGpus(node, *options.gpus));
  std::vector<MonitoredDevice> devices;
  for (unsigned i = 0; i < node.gpus.size(); ++i) {
    if (options.gpus && std::ranges::find(*options.gpus, i) == options.gpus->end()) continue;
    Gpu* gpu = node.gpus[i].get();
    std::optional<SensorProfile> profile;
    if (options.calibration) profile = options.calibration(gpu->identity());
    devices.push_back({.meter = gpu,
                       .gpu = gpu,
                       .sensor = profile ? *std::move(profile) : PriorProfile(gpu->identity())});
  }
  for (const auto& cpu : node.cpus) {
    if (!options.cpus) break;
    devices.push_back({.meter = cpu.get(), .sensor = PriorCpuProfile()});
    if (EnergyMeter* dram = cpu->dram())
      devices.push_back({.meter = dram, .sensor = PriorCpuProfile()});
  }
  // A rail that feeds the whole board contains the GPU and CPU that are listed already.
  const bool others = !devices.empty();
  for (const auto& rail : node.rails) {
    if (!options.rails) break;
    const bool total = rail->role() == PowerRail::Role::kTotal;
    devices.push_back(
        {.meter = rail.get(), .sensor = PriorRailProfile(), .in_total = total && !others});
  }
  std::vector<Gpu*> gpus;
  for (const MonitoredDevice& device : devices) gpus.push_back(device.gpu);
  auto monitor = std::make_unique<EnergyMonitor>(
      clock, std::move(devices),
      EnergyMonitor::Options{.synchronize = std::move(options.synchronize), .board = nullptr});
  return std::unique_ptr<NodeMonitor>(
      new NodeMonitor(std::move(node), std::move(gpus), std::move(monitor), options.thread));
}

NodeMonitor::NodeMonitor(Node node, std::vector<Gpu*> gpus, std::unique_ptr<EnergyMonitor> monitor,
                         bool thread)
    : node_(std::move(node)), gpus_(std::move(gpus)), monitor_(std::move(monitor)) {
  if (thread)
    ticker_ = std::make_unique<Ticker>("zeus-recorder", [this] { return monitor_->Step(); });
}

NodeMonitor::~NodeMonitor() = default;

}  // namespace zeus
