#include "apps/zeus/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace zeus::cli {
namespace {

// What the user can do about an error of this kind.
std::string FixFor(const Error& error) {
  if (error.code == ErrorCode::kPermissionDenied) return "run as root: sudo zeus doctor";
  if (error.code == ErrorCode::kUnavailable) return "try again; if it stays, see dmesg";
  return "";
}

template <class T, class Show>
Finding Describe(std::string what, const Result<T>& value, Show show) {
  if (value.ok()) return {std::move(what), true, show(value.value()), ""};
  return {std::move(what), false, value.error().message, FixFor(value.error())};
}

std::string ShowWatts(Watts power) { return fmt::format("{:.1f} W", power.value()); }
std::string ShowClock(Hertz clock) { return fmt::format("{:.0f} MHz", clock.ToMega()); }

std::string ShowClocks(const std::vector<Hertz>& clocks) {
  if (clocks.empty()) return "none listed";
  if (clocks.size() == 1) return ShowClock(clocks.front()) + " only";
  return fmt::format("{} to {} ({} steps)", ShowClock(clocks.front()), ShowClock(clocks.back()),
                     clocks.size());
}

std::string ShowThrottle(const ThrottleReasons& reasons) {
  std::string text;
  const auto add = [&text](bool holds, const char* name) {
    if (holds) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(reasons.idle, "idle");
  add(reasons.power_cap, "power cap");
  add(reasons.thermal, "thermal");
  add(reasons.locked_clock, "locked clock");
  add(reasons.other, "other");
  return text.empty() ? "none" : text;
}

EnergyDiagnosis DiagnoseEnergy(EnergyMeter& meter, std::optional<UpdatePeriod> period) {
  const auto energy = meter.Energy();
  if (energy.ok()) return {EnergyDiagnosis::Source::kCounter, period, ""};
  const auto source = meter.Power().ok() ? EnergyDiagnosis::Source::kIntegratedPower
                                         : EnergyDiagnosis::Source::kNone;
  return {source, period, energy.error().message};
}

template <class Device>
KnobDiagnosis DiagnosePowerLimit(Device& device) {
  auto limit = device.CurrentPowerLimit();
  if (!limit.ok()) return {limit, limit.error()};
  auto set = device.SetPowerLimit(limit.value().requested);
  if (!set.ok()) return {std::move(limit), std::move(set).error()};
  return {std::move(set), Ok()};
}

std::vector<Finding> DiagnoseOthers(Gpu& gpu) {
  const GpuReading reading = gpu.Read();
  return {
      Describe("instant power", reading.instant_power, ShowWatts),
      Describe("1 s average power", reading.average_power, ShowWatts),
      Describe("memory power", reading.memory_power, ShowWatts),
      Describe("temperature", reading.temperature,
               [](Celsius t) { return fmt::format("{:.0f} °C", t.value()); }),
      Describe("utilisation", reading.utilization,
               [](const Utilization& u) {
                 return fmt::format("{:.0f} % compute, {:.0f} % memory", 100 * u.compute,
                                    100 * u.memory);
               }),
      Describe("memory", reading.memory,
               [](const MemoryUse& m) {
                 return fmt::format("{:.1f} of {:.1f} GiB used", double(m.used_bytes) / (1U << 30),
                                    double(m.total_bytes) / (1U << 30));
               }),
      Describe("graphics clocks", gpu.SupportedClocks(ClockDomain::kGraphics), ShowClocks),
      Describe("memory clocks", gpu.SupportedClocks(ClockDomain::kMemory), ShowClocks),
      Describe("slowed down by", reading.throttle, ShowThrottle),
      Describe("persistence mode", gpu.CurrentPersistence(),
               [](Persistence mode) { return mode == Persistence::kOn ? "on" : "off"; }),
  };
}

}  // namespace

bool DoctorReport::AnyEnergySource() const {
  const auto works = [](const DeviceDiagnosis& device) {
    return device.energy.source != EnergyDiagnosis::Source::kNone;
  };
  return std::any_of(gpus.begin(), gpus.end(), works) ||
         std::any_of(cpus.begin(), cpus.end(), works) ||
         std::any_of(rails.begin(), rails.end(), works);
}

DoctorReport Diagnose(Node& node, Clock& clock, Seconds duration) {
  std::vector<EnergyMeter*> meters;
  for (const auto& gpu : node.gpus) meters.push_back(gpu.get());
  for (const auto& cpu : node.cpus) meters.push_back(cpu.get());
  for (const auto& rail : node.rails) meters.push_back(rail.get());
  const auto periods = MeasureUpdatePeriods(clock, meters, duration);

  DoctorReport report;
  auto period = periods.begin();
  for (const auto& gpu : node.gpus) {
    const GpuIdentity& identity = gpu->identity();
    report.gpus.push_back({.device = gpu->name(),
                           .name = identity.model,
                           .uuid = identity.uuid,
                           .pci = identity.pci_address,
                           .energy = DiagnoseEnergy(*gpu, *period++),
                           .power_limit = DiagnosePowerLimit(*gpu),
                           .others = DiagnoseOthers(*gpu)});
  }
  for (const auto& cpu : node.cpus) {
    std::vector<Finding> others;
    if (EnergyMeter* dram = cpu->dram(); dram != nullptr) {
      others.push_back(Describe("memory energy", dram->TotalEnergy(), [](Joules energy) {
        return fmt::format("{:.0f} J", energy.value());
      }));
    } else {
      others.push_back({"memory energy", false, "no DRAM domain on this package", ""});
    }
    others.push_back({"source", true, cpu->identity().source, ""});
    report.cpus.push_back({.device = cpu->name(),
                           .name = cpu->identity().model,
                           .uuid = "",
                           .pci = "",
                           .energy = DiagnoseEnergy(*cpu, *period++),
                           .power_limit = DiagnosePowerLimit(*cpu),
                           .others = std::move(others)});
  }
  for (const auto& rail : node.rails) {
    report.rails.push_back({.device = rail->name(),
                            .name = rail->name(),
                            .uuid = "",
                            .pci = "",
                            .energy = DiagnoseEnergy(*rail, *period++),
                            .power_limit = std::nullopt,
                            .others = {Describe("power", rail->Power(), ShowWatts)}});
  }
  report.absent = std::move(node.absent);
  return report;
}

}  // namespace zeus::cli
