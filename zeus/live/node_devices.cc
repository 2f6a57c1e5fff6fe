#include "zeus/live/node_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::live {
namespace {

std::string IdOf(const Gpu& gpu) {
  const GpuIdentity& identity = gpu.identity();
  if (!identity.uuid.empty()) return identity.uuid;
  return identity.pci_address.empty() ? gpu.name() : identity.pci_address;
}

std::optional<std::size_t> FindRecorded(const EnergyMonitor& monitor, const std::string& name) {
  for (std::size_t device = 0; device < monitor.device_count(); ++device)
    if (monitor.device_name(device) == name) return device;
  return std::nullopt;
}

// Digits that no device knows would make up a sixth of what a thousand streams send.
constexpr double kMicro = 1e6;
constexpr double kMilli = 1e3;

void Null(std::string& text, std::string_view name) {
  fmt::format_to(std::back_inserter(text), R"("{}":null,)", name);
}
// Writes `"name":1.25,` to so many parts of one, or null where there is no number.
void Number(std::string& text, std::string_view name, double value, double parts) {
  if (!std::isfinite(value)) return Null(text, name);
  fmt::format_to(std::back_inserter(text), R"("{}":{},)", name, std::round(value * parts) / parts);
}
template <class T>
void Number(std::string& text, std::string_view name, const Result<T>& value, double parts) {
  if (!value.ok()) return Null(text, name);
  Number(text, name, value.value().value(), parts);
}
// A standard deviation, to four digits: it never becomes 0.
template <class Unit>
void Deviation(std::string& text, std::string_view name, Quantity<Unit> sigma) {
  if (!std::isfinite(sigma.value())) return Null(text, name);
  fmt::format_to(std::back_inserter(text), R"("{}":{:.4g},)", name, sigma.value());
}

void AppendFlags(std::string& text, MeasurementFlags flags) {
  text += R"("flags":[)";
  if (!flags.empty()) {
    for (const std::string_view flag : flags.Names())
      fmt::format_to(std::back_inserter(text), R"("{}",)", flag);
    text.pop_back();
  }
  text += ']';
}

// Appends `"throttle":["thermal"],`: why the GPU is slower than it was asked to be.
void AppendThrottle(std::string& text, const ThrottleReasons& reasons) {
  const std::array<std::pair<bool, std::string_view>, 4> all = {
      {{reasons.power_cap, "power_cap"},
       {reasons.thermal, "thermal"},
       {reasons.locked_clock, "locked_clock"},
       {reasons.other, "other"}}};
  text += R"("throttle":[)";
  const std::size_t begin = text.size();
  for (const auto& [holds, name] : all)
    if (holds) fmt::format_to(std::back_inserter(text), R"("{}",)", name);
  if (text.size() > begin) text.pop_back();
  text += "],";
}

}  // namespace

NodeDevices::NodeDevices(NodeMonitor& recorder) : recorder_(recorder) {
  const EnergyMonitor& monitor = recorder.monitor();
  for (const auto& gpu : recorder.node().gpus)
    gpus_.push_back({.id = IdOf(*gpu),
                     .name = gpu->name(),
                     .gpu = gpu.get(),
                     .recorded = FindRecorded(monitor, gpu->name())});
  std::ranges::stable_sort(
      gpus_, {}, [](const NodeDevice& device) { return device.gpu->identity().pci_address; });
  for (std::size_t index = 0; index < gpus_.size(); ++index) gpus_[index].index = index;
  for (const auto& cpu : recorder.node().cpus) {
    NodeDevice device{.id = cpu->name(),
                      .name = cpu->name(),
                      .index = static_cast<std::size_t>(cpu->identity().package),
                      .cpu = cpu.get(),
                      .recorded = FindRecorded(monitor, cpu->name())};
    if (EnergyMeter* dram = cpu->dram()) device.dram_recorded = FindRecorded(monitor, dram->name());
    cpus_.push_back(std::move(device));
  }
}

const NodeDevice* NodeDevices::Find(std::string_view id) const {
  for (const auto* list : {&gpus_, &cpus_})
    for (const NodeDevice& device : *list)
      if (device.id == id) return &device;
  return nullptr;
}

std::optional<NodeDevices::Energy> NodeDevices::EnergyOf(const NodeDevice& device) const {
  if (!device.recorded) return std::nullopt;
  const auto present = recorder_.monitor().Now(*device.recorded);
  if (!present.total.ok()) return std::nullopt;
  return Energy{.total = present.total.value(), .sigma = present.total_sigma};
}

void ReadingText::Append(const NodeDevice& device, TimePoint now, std::string& text) const {
  fmt::format_to(std::back_inserter(text), R"({{"device":"{}","name":"{}","index":{},)", device.id,
                 device.name, device.index);
  if (!device.recorded) {
    text += R"("reason":"it is not recorded"})";
    return;
  }
  EnergyMonitor& monitor = recorder_.monitor();
  const EnergyMonitor::Present present = monitor.Now(*device.recorded);
  Number(text, "energy_joules", present.total, kMicro);
  Deviation(text, "energy_sigma_joules", present.total_sigma);
  Number(text, "power_watts", present.power, kMilli);
  Deviation(text, "power_sigma_watts", present.power_sigma);
  const Seconds age = now - monitor.SettledUntil(*device.recorded);
  Number(text, "age_seconds", age < Seconds(1e9) ? age.count() : NAN, kMicro);
  if (device.gpu != nullptr) {
    Number(text, "instant_power_watts", present.instant_power, kMilli);
    Number(text, "temperature_celsius", present.temperature, kMilli);
    Number(text, "graphics_clock_hertz", present.graphics_clock, kMilli);
    Number(text, "requested_limit_watts", present.requested_limit, kMilli);
    Number(text, "enforced_limit_watts", present.enforced_limit, kMilli);
    if (present.utilization.ok()) {
      Number(text, "compute_utilization", present.utilization.value().compute, kMilli);
      Number(text, "memory_utilization", present.utilization.value().memory, kMilli);
    }
    if (present.throttle.ok()) AppendThrottle(text, present.throttle.value());
  } else if (device.dram_recorded) {
    const EnergyMonitor::Present dram = monitor.Now(*device.dram_recorded);
    Number(text, "dram_energy_joules", dram.total, kMicro);
    Number(text, "dram_power_watts", dram.power, kMilli);
  }
  // A device that is lost keeps the energy that it used before.
  const Error* why = !present.total.ok()   ? &present.total.error()
                     : !present.power.ok() ? &present.power.error()
                                           : nullptr;
  if (why != nullptr) text += R"("reason":)" + JsonText(Json(why->message)) + ",";
  fmt::format_to(std::back_inserter(text), R"("source":"{}",)", EnergySourceName(present.source));
  AppendFlags(text, present.flags);
  text += '}';
}

std::string ReadingText::Document(const std::vector<const NodeDevice*>& devices) const {
  Clock& clock = recorder_.monitor().clock();
  const TimePoint now = clock.Now();
  std::string text;
  text.reserve(64 + 512 * devices.size());
  fmt::format_to(std::back_inserter(text), R"({{"at_seconds":{:.6f},"time":"{}","devices":[)",
                 now.time_since_epoch().count(), ToExactText(clock.WallNow()));
  for (const NodeDevice* device : devices) {
    Append(*device, now, text);
    text += ',';
  }
  if (!devices.empty()) text.pop_back();
  text += "]}";
  return text;
}

}  // namespace zeus::live
