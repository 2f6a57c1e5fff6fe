#include "zeus/device/soc/measured_rail.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/device/soc/soc_text.h"
#include "zeus/device/sysfs.h"

namespace zeus::soc {

PowerSensor HwmonPower(std::filesystem::path attribute) {
  return [attribute = std::move(attribute)]() -> Result<Watts> {
    ZEUS_TRY(const std::int64_t microwatts, ReadInteger(attribute));
    return Watts::FromMicro(static_cast<double>(microwatts));
  };
}

Error NoEnergyCounter(const std::string& name) {
  return {ErrorCode::kNotSupported,
          name + ": the sensor has no energy counter: power must be integrated"};
}

MeasuredRail::MeasuredRail(std::string name, Role role, PowerSensor sensor)
    : name_(std::move(name)), role_(role), sensor_(std::move(sensor)) {}

Result<Watts> MeasuredRail::Power() {
  auto power = sensor_();
  if (!power.ok()) return std::move(power).error().While(name_);
  return power;
}

namespace {

// The chip has three inputs; both drivers number what they derive from them further.
constexpr int kMostChannels = 8;

Result<Watts> VoltageTimesCurrent(const std::filesystem::path& millivolts,
                                  const std::filesystem::path& milliamperes) {
  ZEUS_TRY(const std::int64_t voltage, ReadInteger(millivolts));
  ZEUS_TRY(const std::int64_t current, ReadInteger(milliamperes));
  return Watts::FromMicro(static_cast<double>(voltage) * static_cast<double>(current));
}

// Two chips may carry the same label: the second is told apart by its place on the bus.
std::string UniqueName(const std::string& label, const std::string& chip,
                       const Findings& findings) {
  std::string name = "rail:" + label;
  const bool taken =
      std::ranges::any_of(findings.rails, [&](const auto& rail) { return rail->name() == name; });
  return taken ? fmt::format("{}@{}", name, chip) : name;
}

void AddRail(const std::string& label, const std::string& chip, PowerSensor sensor,
             Findings& findings) {
  const auto role = RailRole(label);
  if (!role) return;
  const std::string name = UniqueName(label, chip, findings);
  if (const auto power = sensor(); !power.ok()) {
    findings.absent.push_back({.what = name, .reason = power.error().message, .fix = {}});
    return;
  }
  findings.rails.push_back(std::make_unique<MeasuredRail>(name, *role, std::move(sensor)));
}

void AddHwmonRails(const std::filesystem::path& hwmon, const std::string& chip,
                   Findings& findings) {
  for (int channel = 1; channel < kMostChannels; ++channel) {
    const auto attribute = [&](const char* pattern) {
      return hwmon / fmt::format(fmt::runtime(pattern), channel);
    };
    const auto label = ReadLine(attribute("in{}_label"));
    const auto enabled = ReadUnsigned(attribute("in{}_enable"));
    if (!label.ok() || (enabled.ok() && enabled.value() == 0)) continue;
    AddRail(
        label.value(), chip,
        [voltage = attribute("in{}_input"), current = attribute("curr{}_input")] {
          return VoltageTimesCurrent(voltage, current);
        },
        findings);
  }
}

void AddIioRails(const std::filesystem::path& device, const std::string& chip, Findings& findings) {
  for (int channel = 0; channel < kMostChannels; ++channel) {
    const auto label = ReadLine(device / fmt::format("rail_name_{}", channel));
    if (!label.ok()) continue;
    const auto milliwatts = device / fmt::format("in_power{}_input", channel);
    AddRail(
        label.value(), chip,
        [milliwatts]() -> Result<Watts> {
          ZEUS_TRY(const std::int64_t power, ReadInteger(milliwatts));
          return Watts::FromMilli(static_cast<double>(power));
        },
        findings);
  }
}

}  // namespace

void FindIna3221Rails(const std::filesystem::path& sysfs, Findings& findings) {
  const auto drivers = sysfs / "bus/i2c/drivers";
  for (const auto& chip : ListEntries(drivers / "ina3221"))
    for (const auto& hwmon : ListEntries(chip / "hwmon", "hwmon"))
      AddHwmonRails(hwmon, chip.filename().string(), findings);
  for (const auto& chip : ListEntries(drivers / "ina3221x"))
    for (const auto& device : ListEntries(chip, "iio:device"))
      AddIioRails(device, chip.filename().string(), findings);
}

}  // namespace zeus::soc
