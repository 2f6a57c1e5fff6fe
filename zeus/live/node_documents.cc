#include "zeus/live/node_documents.h"

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/base/version.h"

namespace zeus::live {
namespace {

Json LimitJson(const NodeDevice& device, const EnergyMonitor& monitor) {
  if (!device.recorded) return Json::object();
  const auto present = monitor.Now(*device.recorded);
  const auto watts = [](const Result<Watts>& value) {
    return value.ok() ? FiniteOrNull(value.value().value()) : Json();
  };
  return {{"requested_watts", watts(present.requested_limit)},
          {"enforced_watts", watts(present.enforced_limit)}};
}

Json EnergyJson(const EnergyMonitor& monitor, const NodeDevice& device, TimePoint since,
                TimePoint until) {
  Json json = {{"device", device.id}};
  if (!device.recorded) return json;
  const auto energy = monitor.EnergyBetween(*device.recorded, since, until);
  if (!energy.ok()) {
    json["energy_joules"] = nullptr;
    json["reason"] = energy.error().message;
    return json;
  }
  json["energy_joules"] = FiniteOrNull(energy.value().energy.value());
  json["sigma_joules"] = FiniteOrNull(energy.value().sigma.value());
  json["source"] = EnergySourceName(energy.value().source);
  json["coverage"] = energy.value().coverage;
  json["flags"] = energy.value().flags.Names();
  return json;
}

}  // namespace

Json DescribeGpu(const NodeDevice& device, const EnergyMonitor& monitor) {
  const GpuIdentity& identity = device.gpu->identity();
  return {{"device", device.id},
          {"uuid", identity.uuid},
          {"pci_address", identity.pci_address},
          {"index", device.index},
          {"name", device.name},
          {"model", identity.model},
          {"vendor", VendorName(identity.vendor)},
          {"driver", identity.driver},
          {"power_limit", LimitJson(device, monitor)}};
}

Json DescribeCpu(const NodeDevice& device) {
  return {{"device", device.id},
          {"index", device.index},
          {"model", device.cpu->identity().model},
          {"source", device.cpu->identity().source},
          {"dram", device.dram_recorded.has_value()}};
}

Json DescribeNode(const Node& node) {
  Json absent = Json::array();
  for (const Absence& absence : node.absent)
    absent.push_back({{"what", absence.what}, {"reason", absence.reason}, {"fix", absence.fix}});
  return {{"version", Version()}, {"host", HostName()}, {"absent", std::move(absent)}};
}

Result<Json> EnergyDocument(EnergyMonitor& monitor, const EnergyRequest& request) {
  const double end = std::min(monitor.clock().Now().time_since_epoch().count(), request.until);
  if (request.since > end) return Error{ErrorCode::kInvalidArgument, "since: lies after the end"};
  Json list = Json::array();
  for (const NodeDevice* device : request.devices)
    list.push_back(
        EnergyJson(monitor, *device, TimePoint(Seconds(request.since)), TimePoint(Seconds(end))));
  return Json{
      {"since_seconds", request.since}, {"until_seconds", end}, {"devices", std::move(list)}};
}

}  // namespace zeus::live
