#include "apps/zeus/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"

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

// Formats a DoctorReport as text for people and JSON for programs.

namespace {

// The destination of the text and the terminal that shows it.
struct Out {
  std::back_insert_iterator<std::string> end;
  const Terminal& terminal;
};

void Line(const Out& out, std::string_view what, bool works, std::string_view detail,
          std::string_view fix) {
  const std::string verdict = works ? Painted("yes", Colour::kGreen, out.terminal)
                                    : Painted("no ", Colour::kYellow, out.terminal);
  fmt::format_to(out.end, "    {} {:<18} {}\n", verdict, what, detail);
  if (!fix.empty()) fmt::format_to(out.end, "        {:<18} fix: {}\n", "", fix);
}

std::string ShowPeriod(const std::optional<UpdatePeriod>& period) {
  if (!period) return "too few updates seen to tell how often (watch longer: --seconds)";
  return fmt::format("a new value every {} ({} seen)",
                     WithSigma(period->period.count(), period->error.count(), "s"),
                     period->updates);
}

void EnergyLine(const Out& out, const EnergyDiagnosis& energy) {
  switch (energy.source) {
    case EnergyDiagnosis::Source::kCounter:
      Line(out, "energy", true, fmt::format("counter, {}", ShowPeriod(energy.update_period)), "");
      break;
    case EnergyDiagnosis::Source::kIntegratedPower:
      Line(out, "energy", true, fmt::format("integrated from power, because {}", energy.reason),
           energy.fix);
      break;
    case EnergyDiagnosis::Source::kNone:
      Line(out, "energy", false, energy.reason, energy.fix);
      break;
  }
}

void PowerLimitLine(const Out& out, const KnobDiagnosis& knob) {
  if (!knob.limit.ok()) {
    Line(out, "power limit", false, knob.limit.error().message, knob.fix);
    return;
  }
  const PowerLimit& limit = knob.limit.value();
  std::string text =
      fmt::format("{:.0f} W ({:.0f} to {:.0f} W, default {:.0f} W)", limit.requested.value(),
                  limit.range.min.value(), limit.range.max.value(), limit.default_limit.value());
  if (limit.enforced < limit.requested)
    text +=
        fmt::format("; {:.0f} W enforced by another agent (BMC or board)", limit.enforced.value());
  Line(out, "power limit", true, text, knob.settable.ok() ? knob.fix : "");
  const bool settable = knob.settable.ok();
  Line(out, "set power limit", settable, settable ? "allowed" : knob.settable.error().message,
       settable ? "" : knob.fix);
}

void Section(const Out& out, std::string_view title, const std::vector<DeviceDiagnosis>& devices) {
  if (devices.empty()) return;
  fmt::format_to(out.end, "{}\n", title);
  for (const DeviceDiagnosis& device : devices) {
    fmt::format_to(out.end, "  {}  {}{}{}{}{}\n", device.device, device.name,
                   device.pci.empty() ? "" : "  ", device.pci, device.uuid.empty() ? "" : "  ",
                   device.uuid);
    EnergyLine(out, device.energy);
    if (device.power_limit) PowerLimitLine(out, *device.power_limit);
    for (const Finding& other : device.others)
      Line(out, other.what, other.works, other.detail, other.fix);
  }
}

void Remarks(const Out& out, std::string_view title, const std::vector<Absence>& remarks) {
  if (!remarks.empty()) fmt::format_to(out.end, "{}\n", title);
  for (const Absence& remark : remarks) {
    fmt::format_to(out.end, "  {}: {}\n", remark.what, remark.reason);
    if (!remark.fix.empty()) fmt::format_to(out.end, "    fix: {}\n", remark.fix);
  }
}

Json RemarksJson(const std::vector<Absence>& remarks) {
  Json list = Json::array();
  for (const Absence& remark : remarks)
    list.push_back({{"what", remark.what}, {"reason", remark.reason}, {"fix", remark.fix}});
  return list;
}

Json EnergyJson(const EnergyDiagnosis& energy) {
  Json json;
  switch (energy.source) {
    case EnergyDiagnosis::Source::kCounter:
      json["source"] = "counter";
      break;
    case EnergyDiagnosis::Source::kIntegratedPower:
      json["source"] = "integrated";
      break;
    case EnergyDiagnosis::Source::kNone:
      json["source"] = nullptr;
      break;
  }
  json["update_period_seconds"] = nullptr;
  if (energy.update_period) {
    json["update_period_seconds"] = energy.update_period->period.count();
    json["update_period_error_seconds"] = energy.update_period->error.count();
    json["updates_seen"] = energy.update_period->updates;
  }
  if (!energy.reason.empty()) json["reason"] = energy.reason;
  if (!energy.fix.empty()) json["fix"] = energy.fix;
  return json;
}

Json PowerLimitJson(const KnobDiagnosis& knob) {
  Json json = {{"min", nullptr}, {"max", nullptr}, {"current", nullptr}};
  if (knob.limit.ok()) {
    const PowerLimit& limit = knob.limit.value();
    json = {{"min", limit.range.min.value()},
            {"max", limit.range.max.value()},
            {"current", limit.requested.value()},
            {"default", limit.default_limit.value()},
            {"enforced", limit.enforced.value()}};
  }
  json["settable"] = knob.settable.ok();
  if (!knob.settable.ok()) {
    json["reason"] = knob.settable.error().message;
  } else if (!knob.fix.empty()) {
    json["reason"] = "a stricter limit from outside (BMC or board) is enforced";
  }
  if (!knob.fix.empty()) json["fix"] = knob.fix;
  return json;
}

Json DevicesJson(const std::vector<DeviceDiagnosis>& devices) {
  Json list = Json::array();
  for (const DeviceDiagnosis& device : devices) {
    Json json = {{"device", device.device},
                 {"name", device.name},
                 {"uuid", device.uuid},
                 {"pci", device.pci},
                 {"energy", EnergyJson(device.energy)}};
    if (device.power_limit) json["power_limit"] = PowerLimitJson(*device.power_limit);
    Json others = Json::array();
    for (const Finding& other : device.others) {
      others.push_back({{"what", other.what},
                        {"works", other.works},
                        {"detail", other.detail},
                        {"fix", other.fix}});
    }
    json["others"] = std::move(others);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

std::string ToText(const DoctorReport& report, const Terminal& terminal) {
  std::string text;
  const Out out{std::back_inserter(text), terminal};
  Section(out, "GPUs", report.gpus);
  Section(out, "CPUs", report.cpus);
  Section(out, "Power rails", report.rails);
  Remarks(out, "Left changed", report.leftovers);
  Remarks(out, "Not available", report.absent);
  if (!report.way.empty()) text += fmt::format("Devices are opened {}.\n", report.way);
  text += report.AnyEnergySource()
              ? "At least one energy source works.\n"
              : "No energy source works here. Try a simulated one: zeus sim start --gpus 4xV100 && "
                "eval \"$(zeus sim env)\"\n";
  return text;
}

Json ToJson(const DoctorReport& report) {
  return {{"gpus", DevicesJson(report.gpus)},
          {"cpus", DevicesJson(report.cpus)},
          {"rails", DevicesJson(report.rails)},
          {"leftovers", RemarksJson(report.leftovers)},
          {"way", report.way},
          {"absent", RemarksJson(report.absent)}};
}

}  // namespace zeus::cli
