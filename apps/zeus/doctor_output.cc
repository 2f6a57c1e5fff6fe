// Formats a DoctorReport as text for people and JSON for programs.
#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "apps/zeus/doctor_report.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"

namespace zeus::cli {
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
          {"absent", RemarksJson(report.absent)}};
}

}  // namespace zeus::cli
