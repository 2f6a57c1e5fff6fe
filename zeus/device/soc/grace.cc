#include "zeus/device/soc/grace.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/device/soc/soc_text.h"
#include "zeus/device/sysfs.h"

namespace zeus::soc {
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

std::unique_ptr<MeasuredRail> MemoryOf(const Sensors& sensors, int socket) {
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
          std::make_unique<GraceCpu>(name.socket, sensor, MemoryOf(sensors, name.socket)));
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
