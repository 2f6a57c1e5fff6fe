#include "zeus/monitor/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "zeus/base/quantity_text.h"

namespace zeus {
namespace {

constexpr std::array<std::pair<MeasurementFlag, std::string_view>, 10> kFlagNames = {{
    {MeasurementFlag::kCounterReset, "counter_reset"},
    {MeasurementFlag::kStaleCounter, "stale_counter"},
    {MeasurementFlag::kShortWindow, "short_window"},
    {MeasurementFlag::kLimitChanged, "limit_changed"},
    {MeasurementFlag::kThrottled, "throttled"},
    {MeasurementFlag::kSensorAliasingPossible, "sensor_aliasing_possible"},
    {MeasurementFlag::kEstimated, "estimated"},
    {MeasurementFlag::kPartial, "partial"},
    {MeasurementFlag::kShared, "shared"},
    {MeasurementFlag::kPreview, "preview"},
}};

std::string PeriodText(Seconds period) {
  const double milliseconds = period.count() * 1e3;
  return milliseconds < 10 ? fmt::format("{:.2g} ms", milliseconds)
                           : fmt::format("{:.0f} ms", milliseconds);
}

}  // namespace

const char* EnergySourceName(EnergySource source) {
  switch (source) {
    case EnergySource::kCounter:
      return "counter";
    case EnergySource::kIntegrated:
      return "integrated";
    case EnergySource::kModel:
      return "model";
  }
  return "unknown";
}

std::vector<std::string_view> MeasurementFlags::Names() const {
  std::vector<std::string_view> names;
  for (const auto& [flag, name] : kFlagNames)
    if (Has(flag)) names.push_back(name);
  return names;
}

std::optional<MeasurementFlag> MeasurementFlags::Parse(std::string_view name) {
  const auto found =
      std::ranges::find(kFlagNames, name, [](const auto& entry) { return entry.second; });
  if (found == kFlagNames.end()) return std::nullopt;
  return found->first;
}

Measurement::Total Measurement::Sum() const {
  Total total;
  double variance = 0;
  double shared_variance = 0;
  for (const DeviceMeasurement& device : devices) {
    if (!device.in_total) continue;
    if (!device.energy.ok()) {
      total.missing.push_back(device.device);
      continue;
    }
    const EnergyEstimate& estimate = device.energy.value();
    total.energy += estimate.energy;
    total.attributed += estimate.attributed;
    variance += estimate.sigma.value() * estimate.sigma.value();
    shared_variance += estimate.shared_sigma.value() * estimate.shared_sigma.value();
    total.contains.push_back(device.device);
  }
  total.sigma = Joules(std::sqrt(variance));
  total.shared_sigma = Joules(std::sqrt(shared_variance));
  return total;
}

const DeviceMeasurement* Measurement::Find(std::string_view device) const {
  const auto found = std::ranges::find(devices, device, &DeviceMeasurement::device);
  return found == devices.end() ? nullptr : &*found;
}

std::string ToText(const EnergyEstimate& estimate) {
  return fmt::format("{} ({}, {}, {} update{})", WithSigma(estimate.energy, estimate.sigma),
                     EnergySourceName(estimate.source), PeriodText(estimate.update_period),
                     estimate.updates, estimate.updates == 1 ? "" : "s");
}

std::string ToText(const DeviceMeasurement& device) {
  return device.energy.ok() ? ToText(device.energy.value()) : device.energy.error().message;
}

}  // namespace zeus
