#include "zeus/export/node_sampler.h"

#include <string>

namespace zeus {
namespace {

DeviceIdentity Identify(const NodeMonitor& node, const std::string& name, const Gpu* gpu) {
  if (gpu != nullptr) return {name, gpu->identity().model, gpu->identity().uuid};
  for (const auto& cpu : node.node().cpus) {
    const EnergyMeter* dram = cpu->dram();
    if (cpu->name() == name || (dram != nullptr && dram->name() == name))
      return {name, cpu->identity().model, ""};
  }
  return {name, "", ""};
}

}  // namespace

NodeSampler::NodeSampler(NodeMonitor& node)
    : monitor_(node.monitor()), start_(node.monitor().clock().Now()) {
  for (std::size_t device = 0; device < monitor_.device_count(); ++device) {
    Gpu* gpu = node.gpu(device);
    identities_.push_back(Identify(node, monitor_.device_name(device), gpu));
    limits_.emplace_back();
    if (gpu == nullptr) continue;
    if (auto limit = gpu->CurrentPowerLimit(); limit.ok()) limits_.back() = limit.value();
  }
}

Sample NodeSampler::Take() const {
  Clock& clock = monitor_.clock();
  Sample sample{.taken = clock.WallNow(), .at = clock.Now(), .recorded = {}, .devices = {}};
  sample.recorded = sample.at - start_;
  for (std::size_t device = 0; device < identities_.size(); ++device) {
    DeviceSample taken{.identity = identities_[device], .present = monitor_.Now(device)};
    if (const auto& limit = limits_[device]) {
      taken.limit_range = limit->range;
      taken.default_limit = limit->default_limit;
    }
    taken.in_total = monitor_.device_in_total(device);
    sample.devices.push_back(std::move(taken));
  }
  return sample;
}

}  // namespace zeus
