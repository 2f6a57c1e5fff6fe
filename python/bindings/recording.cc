#include "python/bindings/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "python/bindings/errors.h"

namespace zeus::python {
namespace {

using Quantity = Recording::Quantity;

// Clocks are read one after the other, and slewed by less than this between two questions.
constexpr double kSameTime = 1e-3;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::array kKeptQuantities = {Quantity::kPower, Quantity::kAveragePower,
                                        Quantity::kMemoryPower, Quantity::kTemperature};

double Integral(const std::vector<Recording::Span>& spans, double begin, double end) {
  double joules = 0;
  for (const Recording::Span& span : spans)
    joules += span.value * std::max(0.0, std::min(end, span.end) - std::max(begin, span.begin));
  return joules;
}

Result<double> PresentValue(const EnergyMonitor::Present& present, Quantity quantity) {
  const auto value = [](const auto& result) -> Result<double> {
    if (!result.ok()) return result.error();
    return result.value().value();
  };
  switch (quantity) {
    case Quantity::kPower:
      return value(present.power);
    case Quantity::kTemperature:
      return value(present.temperature);
    case Quantity::kGraphicsClock:
      return value(present.graphics_clock);
    case Quantity::kPowerLimit:
      return value(present.enforced_limit);
    case Quantity::kAveragePower:
      return value(present.average_power);
    case Quantity::kMemoryPower:
      return value(present.memory_power);
    case Quantity::kUtilization:
      break;
  }
  if (!present.utilization.ok()) return present.utilization.error();
  return present.utilization.value().compute;
}

}  // namespace

std::vector<std::string> Recording::DeviceNames() const {
  std::vector<std::string> names;
  if (kept_) {
    for (const Kept& device : *kept_) names.push_back(device.name);
    return names;
  }
  for (std::size_t i = 0; i < energy().device_count(); ++i)
    names.push_back(energy().device_name(i));
  return names;
}

void Recording::CheckDevice(std::size_t device) const {
  const std::size_t count = kept_ ? kept_->size() : energy().device_count();
  if (device < count) return;
  throw Failure(
      {ErrorCode::kNotFound, fmt::format("{} devices are recorded, not {}", count, device)});
}

const std::vector<Recording::Span>& Recording::KeptLine(std::size_t device,
                                                        Quantity quantity) const {
  for (const auto& [kind, line] : (*kept_)[device].lines)
    if (kind == quantity) return line;
  throw Failure({ErrorCode::kUnavailable, "the recording was stopped"});
}

double Recording::Present(std::size_t device, Quantity quantity) const {
  CheckDevice(device);
  if (!kept_) return Unwrap(PresentValue(energy().Now(device), quantity));
  const std::vector<Span>& line = KeptLine(device, quantity);
  if (line.empty())
    throw Failure({ErrorCode::kUnavailable, "nothing was recorded before it was stopped"});
  return line.back().value;
}

void Recording::Synchronize() {
  scale_ = monitor_->time_scale();
  const Clock& clock = energy().clock();
  const double wall = std::chrono::duration<double>(clock.WallNow().time_since_epoch()).count();
  const double origin = clock.Now().time_since_epoch().count() - wall * scale_;
  if (!known_origin_ || std::abs(origin - *known_origin_) > kSameTime * scale_)
    known_origin_ = origin;
  origin_ = *known_origin_;
}

std::vector<Recording::Span> Recording::History(std::size_t device, Quantity quantity,
                                                std::optional<double> begin,
                                                std::optional<double> end) {
  constexpr double kEver = std::numeric_limits<double>::infinity();
  CheckDevice(device);
  const double from = begin.value_or(-kEver);
  const double until = end.value_or(kEver);
  std::vector<Span> spans;
  if (kept_) {
    for (const Span& span : KeptLine(device, quantity))
      if (span.end >= from && span.begin < until) spans.push_back(span);
    return spans;
  }
  Synchronize();
  for (const Timeline::Sample& sample :
       energy().History(device, quantity, FromUnix(from), FromUnix(until)))
    spans.push_back(
        {.begin = ToUnix(sample.time), .end = ToUnix(sample.end), .value = sample.value});
  return spans;
}

std::optional<double> Recording::Since(std::size_t device, Quantity quantity) {
  const std::vector<Span> spans = History(device, quantity, {}, {});
  return spans.empty() ? std::nullopt : std::optional(spans.front().begin);
}

Recording::Energy Recording::EnergyBetween(std::size_t device, double begin, double end) {
  CheckDevice(device);
  if (kept_) {
    const std::vector<Span>& line = KeptLine(device, Quantity::kPower);
    if (line.empty() || begin >= line.back().end)
      throw Failure({ErrorCode::kUnavailable, "the recording was stopped before"});
    return {.joules = scale_ * Integral(line, begin, end), .sigma = kUnknown};
  }
  Synchronize();
  const TimePoint until = std::min(FromUnix(end), energy().clock().Now());
  const EnergyEstimate estimate =
      Unwrap(energy().EnergyBetween(device, std::min(FromUnix(begin), until), until));
  return {.joules = estimate.energy.value(), .sigma = estimate.sigma.value()};
}

Recording::Energy Recording::TotalEnergy(std::size_t device) const {
  CheckDevice(device);
  const EnergyMonitor::Present present = energy().Now(device);
  return {.joules = Unwrap(present.total).value(), .sigma = present.total_sigma.value()};
}

void Recording::Stop() {
  if (kept_) return;
  std::vector<Kept> kept;
  const std::vector<std::string> names = DeviceNames();
  for (std::size_t device = 0; device < names.size(); ++device) {
    kept.push_back({.name = names[device], .lines = {}});
    for (const Quantity quantity : kKeptQuantities)
      kept.back().lines.emplace_back(quantity, History(device, quantity, {}, {}));
  }
  kept_ = std::move(kept);
  monitor_->Close();
}

}  // namespace zeus::python
