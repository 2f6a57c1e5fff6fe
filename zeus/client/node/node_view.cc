#include "zeus/client/node/node_view.h"

#include <algorithm>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"

namespace zeus::client {
namespace {

using wire::LeaseKnob;
using Knobs = std::map<LeaseKnob, KnobChoices>;

// {"watts": 100} or {"hertz": 1e9}
Result<Setting> ParseSetting(const Json& json) {
  std::optional<double> watts;
  std::optional<double> hertz;
  FieldReader reader("a setting", json);
  reader.Read("watts", watts);
  reader.Read("hertz", hertz);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (watts) return Setting(Watts(*watts));
  if (hertz) return Setting(Hertz(*hertz));
  return FieldError("watts", "is missing in a setting");
}

// Leaves `choices` alone where there is no range, as for persistence.
Status ReadRange(LeaseKnob knob, const Json& json, Knobs& knobs) {
  if (!json.is_object() || !json.contains("lowest") || !json.contains("highest")) return Ok();
  ZEUS_TRY(const Setting lowest, ParseSetting(json["lowest"]));
  ZEUS_TRY(const Setting highest, ParseSetting(json["highest"]));
  if (lowest.index() != highest.index()) return FieldError("lowest", "has another unit");
  KnobChoices choices{.lowest = lowest, .highest = highest};
  if (const auto steps = json.find("steps"); steps != json.end() && steps->is_array())
    for (const Json& step : *steps) {
      ZEUS_TRY(const Setting setting, ParseSetting(step));
      choices.steps.push_back(setting);
    }
  knobs.insert_or_assign(knob, std::move(choices));
  return Ok();
}

// Knobs that this version does not know are left out.
Status ReadKnobs(const Json& ranges, const Json& list, Knobs& whole, Knobs& allowed) {
  if (ranges.is_object())
    for (const auto& [name, range] : ranges.items())
      if (const auto knob = wire::ParseLeaseKnob(name); knob.ok())
        ZEUS_RETURN_IF_ERROR(ReadRange(knob.value(), range, whole));
  if (!list.is_array()) return Ok();
  for (const Json& entry : list) {
    const auto name = entry.is_object() ? entry.value("knob", Json()) : Json();
    if (!name.is_string()) return FieldError("knobs", "have no name");
    if (const auto knob = wire::ParseLeaseKnob(name.get<std::string>()); knob.ok())
      ZEUS_RETURN_IF_ERROR(ReadRange(knob.value(), entry, allowed));
  }
  return Ok();
}

Vendor VendorOf(const std::string& name) {
  for (const Vendor vendor : {Vendor::kAmd, Vendor::kIntel})
    if (name == VendorName(vendor)) return vendor;
  return Vendor::kNvidia;
}

std::optional<Watts> ToWatts(const std::optional<double>& value) {
  return value ? std::optional<Watts>(*value) : std::nullopt;
}

Status ReadLimit(const Json& json, NodeGpu& gpu) {
  if (!json.is_object()) return Ok();
  std::optional<double> requested;
  std::optional<double> enforced;
  std::optional<double> usual;
  FieldReader reader("a power limit", json);
  reader.Read("requested_watts", requested);
  reader.Read("enforced_watts", enforced);
  reader.Read("default_watts", usual);
  gpu.requested_limit = ToWatts(requested);
  gpu.enforced_limit = ToWatts(enforced);
  gpu.default_limit = ToWatts(usual);
  return reader.FinishAllowingOthers();
}

Result<NodeGpu> ParseGpu(const Json& json) {
  NodeGpu gpu;
  std::string vendor;
  Json limit;
  Json ranges;
  Json knobs;
  std::optional<bool> persistence;
  FieldReader reader("a GPU", json);
  reader.Require("device", gpu.device);
  reader.Read("name", gpu.name);
  reader.ReadUnlessNull("uuid", gpu.identity.uuid);
  reader.ReadUnlessNull("pci_address", gpu.identity.pci_address);
  reader.ReadUnlessNull("model", gpu.identity.model);
  reader.ReadUnlessNull("driver", gpu.identity.driver);
  reader.ReadUnlessNull("vendor", vendor);
  reader.Read("power_limit", limit);
  reader.Read("ranges", ranges);
  reader.Read("knobs", knobs);
  reader.Read("persistence", persistence);
  reader.Read("lost", gpu.lost);
  reader.Read("stuck", gpu.stuck);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  gpu.identity.vendor = VendorOf(vendor);
  if (persistence) gpu.persistence = *persistence ? Persistence::kOn : Persistence::kOff;
  ZEUS_RETURN_IF_ERROR(ReadLimit(limit, gpu));
  ZEUS_RETURN_IF_ERROR(ReadKnobs(ranges, knobs, gpu.ranges, gpu.knobs));
  return gpu;
}

Result<NodeCpu> ParseCpu(const Json& json) {
  NodeCpu cpu;
  Json ranges;
  Json knobs;
  FieldReader reader("a CPU", json);
  reader.Require("device", cpu.device);
  reader.Read("index", cpu.identity.package);
  reader.ReadUnlessNull("model", cpu.identity.model);
  reader.ReadUnlessNull("source", cpu.identity.source);
  reader.Read("dram", cpu.dram);
  reader.Read("ranges", ranges);
  reader.Read("knobs", knobs);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  ZEUS_RETURN_IF_ERROR(ReadKnobs(ranges, knobs, cpu.ranges, cpu.knobs));
  return cpu;
}

}  // namespace

Result<NodeView> ParseNodeView(const Json& json) {
  NodeView node;
  std::vector<Json> gpus;
  std::vector<Json> cpus;
  FieldReader reader("the node", json);
  reader.Read("version", node.version);
  reader.Read("host", node.host);
  reader.Require("gpus", gpus);
  reader.Read("cpus", cpus);
  Json pods;
  reader.ReadUnlessNull("pods", pods);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (pods.is_object()) {
    FieldReader of_pods("pods", pods);
    of_pods.ReadUnlessNull("trouble", node.pod_trouble);
    ZEUS_RETURN_IF_ERROR(of_pods.FinishAllowingOthers());
  }
  for (const Json& gpu : gpus) {
    ZEUS_TRY(NodeGpu parsed, ParseGpu(gpu));
    node.gpus.push_back(std::move(parsed));
  }
  for (const Json& cpu : cpus) {
    ZEUS_TRY(NodeCpu parsed, ParseCpu(cpu));
    node.cpus.push_back(std::move(parsed));
  }
  return node;
}

Result<std::vector<ReadingView>> ParseReadings(const Json& json) {
  std::vector<Json> devices;
  FieldReader whole("the readings", json);
  whole.Require("devices", devices);
  ZEUS_RETURN_IF_ERROR(whole.FinishAllowingOthers());
  std::vector<ReadingView> readings;
  for (const Json& device : devices) {
    ReadingView reading;
    FieldReader reader("a reading", device);
    reader.Require("device", reading.device);
    reader.Read("name", reading.name);
    reader.Read("energy_joules", reading.energy_joules);
    reader.Read("power_watts", reading.power_watts);
    reader.Read("power_sigma_watts", reading.power_sigma_watts);
    reader.Read("age_seconds", reading.age_seconds);
    reader.Read("temperature_celsius", reading.temperature_celsius);
    reader.Read("graphics_clock_hertz", reading.graphics_clock_hertz);
    reader.Read("requested_limit_watts", reading.requested_limit_watts);
    reader.Read("enforced_limit_watts", reading.enforced_limit_watts);
    reader.Read("compute_utilization", reading.compute_utilization);
    reader.Read("memory_utilization", reading.memory_utilization);
    ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
    readings.push_back(std::move(reading));
  }
  return readings;
}

}  // namespace zeus::client
