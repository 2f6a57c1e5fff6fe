#include "zeus/export/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "zeus/base/csv.h"

namespace zeus {

std::string_view DeviceIdentity::kind() const {
  return std::string_view(name).substr(0, name.find(':'));
}

std::string_view DeviceIdentity::index() const {
  const auto colon = name.find(':');
  return colon == std::string::npos ? std::string_view() : std::string_view(name).substr(colon + 1);
}

const Error* WhyUnreadable(const EnergyMonitor::Present& present) {
  if (!present.total.ok()) return &present.total.error();
  return present.power.ok() ? nullptr : &present.power.error();
}

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

namespace {

template <class Unit>
std::string Cell(const Result<Quantity<Unit>>& value) {
  return value.ok() ? fmt::format("{}", value.value().value()) : "";
}

// The reason why a row has no energy, or "".
std::string Reason(const EnergyMonitor::Present& present) {
  return present.total.ok() ? "" : present.total.error().message;
}

}  // namespace

std::string SampleCsvHeader() {
  return "time_seconds,elapsed_seconds,device,model,uuid,power_watts,power_sigma_watts,"
         "energy_joules,energy_sigma_joules,source,temperature_celsius,utilization_ratio,"
         "graphics_clock_hertz,requested_limit_watts,enforced_limit_watts,flags,reason";
}

std::vector<std::string> SampleCsvRows(const Sample& sample) {
  std::vector<std::string> rows;
  for (const DeviceSample& device : sample.devices) {
    const DeviceIdentity& identity = device.identity;
    const EnergyMonitor::Present& present = device.present;
    const bool known = present.total.ok();
    const std::vector<std::string> fields = {
        fmt::format("{:.6f}", UnixTime(sample.taken).count()),
        fmt::format("{:.6f}", sample.recorded.count()),
        identity.name,
        identity.model,
        identity.uuid,
        Cell(present.power),
        present.power.ok() ? fmt::format("{}", present.power_sigma.value()) : "",
        Cell(present.total),
        known ? fmt::format("{}", present.total_sigma.value()) : "",
        known ? EnergySourceName(present.source) : "",
        Cell(present.temperature),
        present.utilization.ok() ? fmt::format("{}", present.utilization.value().compute) : "",
        Cell(present.graphics_clock),
        Cell(present.requested_limit),
        Cell(present.enforced_limit),
        fmt::format("{}", fmt::join(present.flags.Names(), " ")),
        Reason(present)};
    rows.push_back(CsvRow(fields));
  }
  return rows;
}

}  // namespace zeus
