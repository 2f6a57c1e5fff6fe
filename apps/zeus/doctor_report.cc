#include "apps/zeus/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

// Returns advice for the user about an error of this kind.
std::string FixFor(const Error& error) {
  if (error.code == ErrorCode::kPermissionDenied)
    return "run as root, or in a container add --cap-add SYS_ADMIN";
  if (error.code == ErrorCode::kUnavailable) return "try again; if it stays, see dmesg";
  return "";
}

// Removes the name of the device from an error: it is redundant below the heading of the device.
Error WithoutDevice(const std::string& device, Error error) {
  const std::string prefix = device + ": ";
  if (error.message.starts_with(prefix)) error.message.erase(0, prefix.size());
  return error;
}

// Describes the sensors of one device.
class Describe {
 public:
  explicit Describe(std::string device) : device_(std::move(device)) {}

  template <class T, class Show>
  Finding operator()(std::string what, const Result<T>& value, Show show) const {
    if (value.ok()) return {std::move(what), true, show(value.value()), ""};
    return {std::move(what), false, WithoutDevice(device_, value.error()).message,
            FixFor(value.error())};
  }

 private:
  const std::string device_;
};

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

// A counter that did not change for this long while power was drawn is broken: no known one updates
// more slowly than every 100 ms, and drivers refresh it at least twice a second.
constexpr Seconds kLongestUpdatePeriod = 1s;

// The result of polling a device for a while.
struct Watch {
  std::optional<UpdatePeriod> period;
  Seconds duration;
};

EnergyDiagnosis DiagnoseEnergy(EnergyMeter& meter, const Watch& watch) {
  const auto power = meter.Power();
  const auto other_source =
      power.ok() ? EnergyDiagnosis::Source::kIntegratedPower : EnergyDiagnosis::Source::kNone;
  const auto energy = meter.Energy();
  if (!energy.ok()) {
    return {other_source, watch.period, WithoutDevice(meter.name(), energy.error()).message,
            FixFor(energy.error())};
  }
  const bool asleep = power.ok() && power.value() <= Watts(0);
  if (!watch.period && watch.duration >= kLongestUpdatePeriod && !asleep) {
    return {other_source, watch.period,
            fmt::format("the energy counter stood still for {:.1f} s", watch.duration.count()),
            "reload the driver or reset the device"};
  }
  return {EnergyDiagnosis::Source::kCounter, watch.period, "", ""};
}

// Persistence mode is the safest knob to test: unlike the power limit, no other program is likely
// to change it meanwhile.
Status TryKnob(Gpu& gpu, const PowerLimit& limit) {
  if (const auto mode = gpu.CurrentPersistence(); mode.ok()) {
    Status set = gpu.SetPersistence(mode.value());
    if (set.ok() || set.error().code != ErrorCode::kNotSupported) return set;
  }
  ZEUS_RETURN_IF_ERROR(gpu.SetPowerLimitWithoutJournal(limit.requested));
  return Ok();
}

Status TryKnob(CpuPackage& cpu, const PowerLimit& limit) {
  ZEUS_RETURN_IF_ERROR(cpu.SetPowerLimitWithoutJournal(limit.requested));
  return Ok();
}

template <class Device>
KnobDiagnosis DiagnosePowerLimit(Device& device) {
  auto limit = device.CurrentPowerLimit();
  if (!limit.ok()) {
    const Error error = WithoutDevice(device.name(), limit.error());
    return {error, error, FixFor(error)};
  }
  Status settable = TryKnob(device, limit.value());
  if (!settable.ok()) {
    Error error = WithoutDevice(device.name(), std::move(settable).error());
    std::string fix = FixFor(error);
    return {std::move(limit), std::move(error), std::move(fix)};
  }
  const bool capped = limit.value().enforced < limit.value().requested;
  return {std::move(limit), Ok(), capped ? "lift the limit where it was set: BMC or board" : ""};
}

std::vector<Finding> DiagnoseOthers(Gpu& gpu) {
  const GpuReading reading = gpu.Read();
  const Describe describe(gpu.name());
  return {
      describe("instant power", reading.instant_power, ShowWatts),
      describe("1 s average power", reading.average_power, ShowWatts),
      describe("memory power", reading.memory_power, ShowWatts),
      describe("temperature", reading.temperature,
               [](Celsius t) { return fmt::format("{:.0f} °C", t.value()); }),
      describe("utilisation", reading.utilization,
               [](const Utilization& u) {
                 return fmt::format("{:.0f} % compute, {:.0f} % memory", 100 * u.compute,
                                    100 * u.memory);
               }),
      describe("memory", reading.memory,
               [](const MemoryUse& m) {
                 return fmt::format("{:.1f} of {:.1f} GiB used", double(m.used_bytes) / (1U << 30),
                                    double(m.total_bytes) / (1U << 30));
               }),
      describe("graphics clocks", gpu.SupportedClocks(ClockDomain::kGraphics), ShowClocks),
      describe("memory clocks", gpu.SupportedClocks(ClockDomain::kMemory), ShowClocks),
      describe("slowed down by", reading.throttle, ShowThrottle),
      describe("persistence mode", gpu.CurrentPersistence(),
               [](Persistence mode) { return mode == Persistence::kOn ? "on" : "off"; }),
  };
}

DeviceDiagnosis DiagnoseGpu(Gpu& gpu, const Watch& watch) {
  const GpuIdentity& identity = gpu.identity();
  return {.device = gpu.name(),
          .name = identity.model,
          .uuid = identity.uuid,
          .pci = identity.pci_address,
          .energy = DiagnoseEnergy(gpu, watch),
          .power_limit = DiagnosePowerLimit(gpu),
          .others = DiagnoseOthers(gpu)};
}

DeviceDiagnosis DiagnoseCpu(CpuPackage& cpu, const Watch& watch) {
  EnergyMeter* const dram = cpu.dram();
  const Result<Joules> memory =
      dram != nullptr ? dram->TotalEnergy()
                      : Error{ErrorCode::kNotSupported, "no DRAM domain on this package"};
  const auto show_energy = [](Joules energy) { return fmt::format("{:.0f} J", energy.value()); };
  return {.device = cpu.name(),
          .name = cpu.identity().model,
          .uuid = "",
          .pci = "",
          .energy = DiagnoseEnergy(cpu, watch),
          .power_limit = DiagnosePowerLimit(cpu),
          .others = {Finding{"read through", true, cpu.identity().source, ""},
                     Describe(cpu.name())("memory energy", memory, show_energy)}};
}

DeviceDiagnosis DiagnoseRail(PowerRail& rail, const Watch& watch) {
  return {.device = rail.name(),
          .name = rail.role() == PowerRail::Role::kTotal ? "the whole board" : "a part",
          .uuid = "",
          .pci = "",
          .energy = DiagnoseEnergy(rail, watch),
          .power_limit = std::nullopt,
          .others = {Describe(rail.name())("power", rail.Power(), ShowWatts)}};
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
  const auto next = [&period, duration] { return Watch{*period++, duration}; };
  for (const auto& gpu : node.gpus) report.gpus.push_back(DiagnoseGpu(*gpu, next()));
  for (const auto& cpu : node.cpus) report.cpus.push_back(DiagnoseCpu(*cpu, next()));
  for (const auto& rail : node.rails) report.rails.push_back(DiagnoseRail(*rail, next()));
  report.absent = std::move(node.absent);
  return report;
}

}  // namespace zeus::cli
