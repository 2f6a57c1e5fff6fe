// A SweepReport as JSON (schema "zeus.profile/1") and CSV, see docs/formats.md.
#include <fmt/format.h>

#include "apps/zeus/profile/sweep_report.h"
#include "apps/zeus/run/report.h"
#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/base/version.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::cli {
namespace {

constexpr const char* kSchema = "zeus.profile/1";

const char* Name(ProgressSource source) {
  switch (source) {
    case ProgressSource::kNone:
      return "none";
    case ProgressSource::kOutput:
      return "output";
    case ProgressSource::kFile:
      return "file";
  }
  return "none";
}

Json PerStepJson(const std::optional<SweepRow::PerStep>& step) {
  if (!step) return nullptr;
  return {{"steps", step->steps},
          {"steps_per_second", step->Rate()},
          {"steps_per_second_sigma", step->RateSigma()},
          {"time_per_step_seconds", step->time.count()},
          {"time_per_step_sigma_seconds", step->time_sigma.count()},
          {"energy_per_step_joules", step->energy.value()},
          {"energy_per_step_sigma_joules", step->energy_sigma.value()}};
}

Json RowJson(const SweepReport& report, std::size_t index) {
  const SweepRow& row = report.rows[index];
  return {{"setting", ToNumber(row.setting)},
          {"slices", row.slices},
          {"time_seconds", row.time.count()},
          {"power_watts", row.power.value()},
          {"power_sigma_watts", row.power_sigma.value()},
          {"per_step", PerStepJson(row.per_step)},
          {"best_for", ChosenBy(report, index)}};
}

Json SliceJson(const SweepReport& report, const PowerLimitOptimizer::MeasuredSlice& slice) {
  Json json = {{"round", slice.round},
               {"setting", ToNumber(report.settings[slice.setting])},
               {"time_seconds", slice.reading.time.count()},
               {"energy_joules", slice.reading.energy.value()},
               {"energy_sigma_joules", slice.reading.sigma.value()}};
  json["steps"] = slice.rate ? Json(slice.rate->steps) : Json(nullptr);
  json["time_per_step_seconds"] =
      slice.rate ? Json(slice.rate->time_per_step.count()) : Json(nullptr);
  return json;
}

Json ChoiceJson(const SweepReport& report, const SettingChoice& choice) {
  Json json = {{"objective", choice.objective}};
  json["setting"] = choice.row ? Json(ToNumber(report.rows[*choice.row].setting)) : Json(nullptr);
  if (!choice.row) json["reason"] = choice.reason;
  return json;
}

Json DevicesJson(const SweepReport& report) {
  Json devices = Json::array();
  for (const JobKnob::Device& device : report.devices)
    devices.push_back({{"device", device.name}, {"model", device.model}, {"uuid", device.uuid}});
  return devices;
}

}  // namespace

Json ToJson(const SweepReport& report) {
  Json json = {{"schema", kSchema}, {"command", report.command}};
  if (!report.label.empty()) json["label"] = report.label;
  json["host"] = HostName();
  json["version"] = Version();
  json["started"] = ToExactText(report.started);
  json["knob"] = KnobKindName(report.knob);
  json["unit"] = IsClock(report.knob) ? "megahertz" : "watts";
  json["devices"] = DevicesJson(report);
  json["driver"] = report.driver;
  json["max_power_watts"] = report.max_power.value();
  json["progress"] = Name(report.progress);
  json["slice_seconds"] = report.plan.slice.count();
  json["warmup_seconds"] = report.plan.warmup.count();
  json["complete"] = report.complete;
  json["shared_error"] = report.shared_error;
  json["settings"] = Json::array();
  for (std::size_t i = 0; i < report.rows.size(); ++i)
    json["settings"].push_back(RowJson(report, i));
  json["choices"] = Json::array();
  for (const SettingChoice& choice : report.choices)
    json["choices"].push_back(ChoiceJson(report, choice));
  json["slices"] = Json::array();
  for (const PowerLimitOptimizer::MeasuredSlice& slice : report.slices)
    json["slices"].push_back(SliceJson(report, slice));
  json["notes"] = NotesOn(report);
  return json;
}

std::string SweepCsvHeader() {
  return "knob,setting,slices,time_seconds,power_watts,power_sigma_watts,steps_per_second,"
         "steps_per_second_sigma,energy_per_step_joules,energy_per_step_sigma_joules,best_for\n";
}

std::string ToCsv(const SweepReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const SweepRow& row = report.rows[i];
    text += fmt::format("{},{},{},{},{},{},", KnobKindName(report.knob), ToNumber(row.setting),
                        row.slices, row.time.count(), row.power.value(), row.power_sigma.value());
    if (const auto& step = row.per_step) {
      text += fmt::format("{},{},{},{},", step->Rate(), step->RateSigma(), step->energy.value(),
                          step->energy_sigma.value());
    } else {
      text += ",,,,";
    }
    text += fmt::format("{}\n", fmt::join(ChosenBy(report, i), ";"));
  }
  return text;
}

}  // namespace zeus::cli
