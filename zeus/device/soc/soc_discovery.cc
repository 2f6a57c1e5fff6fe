#include "zeus/device/soc/soc_discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/device/soc/intel_gpu.h"
#include "zeus/device/sysfs.h"

namespace zeus::soc {

std::map<std::string, std::string> ParseUevent(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || !IsPrintable(line)) continue;
    values.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return values;
}

Result<GraceSensorName> ParseGraceSensorName(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, GraceSensor>, 4> kPrefixes{
      {{"Module Power Socket ", GraceSensor::kModule},
       {"Grace Power Socket ", GraceSensor::kGrace},
       {"CPU Power Socket ", GraceSensor::kCpu},
       {"SysIO Power Socket ", GraceSensor::kSysIo}}};
  for (const auto& [prefix, sensor] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    ZEUS_TRY(const std::uint64_t socket, ParseUnsigned(text.substr(prefix.size())));
    constexpr std::uint64_t kMostSockets = 1024;
    if (socket < kMostSockets)
      return GraceSensorName{.sensor = sensor, .socket = static_cast<int>(socket)};
  }
  return Error{ErrorCode::kInvalidArgument, "not the name of a Grace power sensor"};
}

std::optional<PowerRail::Role> RailRole(std::string_view label) {
  // The seventh channel of the chip, and pins that the board does not connect.
  if (label.empty() || label == "sum of shunt voltages" || label == "NC") return std::nullopt;
  // The board's input: newer modules call it VDD_IN, the first Nano POM_5V_IN.
  if (label == "VDD_IN" || label == "POM_5V_IN") return PowerRail::Role::kTotal;
  return PowerRail::Role::kPart;
}

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

namespace {

using Sensors = std::map<GraceSensorName, PowerSensor>;

// The driver has kept its attributes beside the hwmon device and, in older kernels, below it.
Sensors FindSensors(const std::filesystem::path& sysfs, Findings& findings) {
  Sensors sensors;
  for (const auto& hwmon : ListEntries(sysfs / "class/hwmon", "hwmon")) {
    for (const auto& directory : {hwmon, hwmon / "device"}) {
      const auto text = ReadLine(directory / "power1_oem_info");
      if (!text.ok()) continue;
      const auto name = ParseGraceSensorName(text.value());
      if (!name.ok()) continue;
      PowerSensor sensor = HwmonPower(directory / "power1_average");
      if (const auto power = sensor(); power.ok()) {
        sensors.try_emplace(name.value(), std::move(sensor));
      } else {
        findings.absent.push_back(
            {.what = text.value(), .reason = power.error().message, .fix = {}});
      }
      break;
    }
  }
  return sensors;
}

const PowerSensor* Find(const Sensors& sensors, GraceSensor sensor, int socket) {
  const auto found = sensors.find({.sensor = sensor, .socket = socket});
  return found == sensors.end() ? nullptr : &found->second;
}

std::unique_ptr<MeasuredRail> FindMemoryRail(const Sensors& sensors, int socket) {
  const PowerSensor* grace = Find(sensors, GraceSensor::kGrace, socket);
  const PowerSensor* cpu = Find(sensors, GraceSensor::kCpu, socket);
  const PowerSensor* sysio = Find(sensors, GraceSensor::kSysIo, socket);
  if (grace == nullptr || cpu == nullptr || sysio == nullptr) return nullptr;
  const auto difference = [grace = *grace, cpu = *cpu, sysio = *sysio]() -> Result<Watts> {
    ZEUS_TRY(const Watts whole, grace());
    ZEUS_TRY(const Watts cpu_part, cpu());
    ZEUS_TRY(const Watts io_part, sysio());
    if (cpu_part + io_part > whole) {
      return Error{ErrorCode::kUnavailable,
                   "the parts exceed the whole: the meters were updated at different moments"};
    }
    return whole - cpu_part - io_part;
  };
  return std::make_unique<MeasuredRail>(fmt::format("dram:{}", socket), PowerRail::Role::kPart,
                                        difference);
}

bool IsGrace(const std::filesystem::path& procfs) {
  constexpr std::size_t kCpuInfoLimit = 4 << 20;
  const auto text = ReadSmallFile(procfs / "cpuinfo", kCpuInfoLimit);
  // Neoverse V2 cores of Arm.
  return text.ok() && text.value().find("CPU part\t: 0xd4f") != std::string::npos;
}

}  // namespace

GraceCpu::GraceCpu(int socket, PowerSensor power, std::unique_ptr<MeasuredRail> memory)
    : identity_{.package = socket, .model = "NVIDIA Grace", .source = "hwmon"},
      name_(fmt::format("cpu:{}", socket)),
      power_(std::move(power)),
      memory_(std::move(memory)) {}

Result<Watts> GraceCpu::Power() {
  auto power = power_();
  if (!power.ok()) return std::move(power).error().While(name_);
  return power;
}

Result<PowerLimit> GraceCpu::CurrentPowerLimit() { return NoLimit(); }

Result<PowerLimit> GraceCpu::SetPowerLimitWithoutJournal(Watts /*limit*/) { return NoLimit(); }

Error GraceCpu::NoLimit() const {
  return {ErrorCode::kNotSupported,
          name_ + ": Grace has a power limit for the whole module only, not for the CPU"};
}

void FindGrace(const Surroundings& surroundings, Findings& findings) {
  const Sensors sensors = FindSensors(surroundings.sysfs, findings);
  if (sensors.empty() && IsGrace(surroundings.procfs)) {
    findings.absent.push_back(
        {.what = "CPU power (Grace)",
         .reason = "no ACPI power meter names a Grace sensor in power1_oem_info",
         .fix = "sudo modprobe -r acpi_power_meter && sudo modprobe acpi_power_meter "
                "force_cap_on=y"});
  }
  for (const auto& [name, sensor] : sensors) {
    if (name.sensor == GraceSensor::kCpu) {
      findings.cpus.push_back(
          std::make_unique<GraceCpu>(name.socket, sensor, FindMemoryRail(sensors, name.socket)));
    }
    if (name.sensor == GraceSensor::kModule) {
      findings.rails.push_back(std::make_unique<MeasuredRail>(
          fmt::format("rail:module:{}", name.socket), PowerRail::Role::kTotal, sensor));
    }
    if (name.sensor == GraceSensor::kSysIo) {
      findings.rails.push_back(std::make_unique<MeasuredRail>(
          fmt::format("rail:sysio:{}", name.socket), PowerRail::Role::kPart, sensor));
    }
  }
}

}  // namespace zeus::soc

namespace zeus {
namespace {

bool IsJetson(const Surroundings& surroundings) {
  // The device tree ends its strings with a zero byte, which ReadLine() would refuse.
  const auto model = ReadSmallFile(surroundings.sysfs / "firmware/devicetree/base/model");
  return model.ok() && model.value().find("Jetson") != std::string::npos;
}

}  // namespace

Result<Findings> DiscoverSoc(const Surroundings& surroundings) {
  Findings findings;
  soc::FindIna3221Rails(surroundings.sysfs, findings);
  if (findings.rails.empty() && findings.absent.empty() && IsJetson(surroundings)) {
    findings.absent.push_back(
        {.what = "board rails (INA3221)",
         .reason = (surroundings.sysfs / "bus/i2c/drivers").string() + " has no INA3221 monitor",
         .fix = "sudo modprobe ina3221"});
  }
  soc::FindGrace(surroundings, findings);
  soc::FindIntelGpus(surroundings, findings);
  return findings;
}

}  // namespace zeus
