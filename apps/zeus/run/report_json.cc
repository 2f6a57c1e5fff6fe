// A RunReport as JSON: schema "zeus.run/1", see docs/formats.md.
#include <algorithm>
#include <functional>

#include "apps/zeus/run/report.h"
#include "zeus/base/json.h"
#include "zeus/base/statistics.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/monitor/measurement_json.h"

namespace zeus::cli {
namespace {

constexpr const char* kSchema = "zeus.run/1";
constexpr double kSummaryConfidence = 0.95;

Json AveragePower(Joules energy, Seconds time) {
  return time.count() > 0 ? Json((energy / time).value()) : Json(nullptr);
}

Json DeviceJson(const RunReport& report, const DeviceMeasurement& device, Seconds time) {
  Json json = {{"device", device.device}};
  const auto identity = std::ranges::find(report.devices, device.device, &DeviceIdentity::device);
  if (identity != report.devices.end() && !identity->model.empty()) json["model"] = identity->model;
  if (identity != report.devices.end() && !identity->uuid.empty()) json["uuid"] = identity->uuid;
  json.update(zeus::ToJson(device));
  json["average_power_watts"] =
      device.energy.ok() ? AveragePower(device.energy.value().energy, time) : Json(nullptr);
  const auto idle = std::ranges::find(report.idle, device.device, &IdlePower::device);
  if (const auto net = ComputeNetEnergy(device, time, report.idle)) {
    json["idle_power_watts"] = idle->power.value();
    json["net_energy_joules"] = net->energy.value();
    json["net_energy_sigma_joules"] = net->sigma.value();
  }
  return json;
}

Json TotalJson(const RunReport& report, const Measurement& measurement) {
  const Measurement::Total total = measurement.Sum();
  Json json = zeus::ToJson(total);
  json["average_power_watts"] =
      total.contains.empty() ? Json(nullptr) : AveragePower(total.energy, measurement.time);
  if (const NetTotal net = ComputeNetTotal(measurement, report.idle); !net.contains.empty()) {
    json["net_energy_joules"] = net.net.energy.value();
    json["net_energy_sigma_joules"] = net.net.sigma.value();
    json["net_contains"] = net.contains;
  }
  return json;
}

// Adds the fields that one run and the mean of several have in common.
void AddRun(Json& json, const RunReport& report, const Run& run) {
  const Measurement& measurement = run.measurement;
  json["started"] = ToExactText(measurement.started);
  json["exit_code"] = run.exit_code;
  json["time_seconds"] = measurement.time.count();
  Json devices = Json::array();
  for (const DeviceMeasurement& device : measurement.devices)
    devices.push_back(DeviceJson(report, device, measurement.time));
  json["devices"] = std::move(devices);
  json["total"] = TotalJson(report, measurement);
}

using Quantity = std::function<std::optional<double>(const Run&)>;

// Runs without the number are left out; null when none has it.
Json SpreadJson(const std::vector<Run>& runs, const Quantity& quantity) {
  std::vector<double> values;
  for (const Run& run : runs)
    if (const auto value = quantity(run)) values.push_back(*value);
  if (values.empty()) return nullptr;
  const SampleSummary summary = Summarize(values);
  const Interval interval = MeanInterval(summary, kSummaryConfidence);
  return {{"runs", summary.count},
          {"mean", summary.mean},
          {"standard_deviation", summary.count > 1 ? Json(summary.StandardDeviation()) : nullptr},
          {"interval_low", FiniteOrNull(interval.low)},
          {"interval_high", FiniteOrNull(interval.high)}};
}

Json SummaryJson(const RunReport& report) {
  Json json = {{"confidence", kSummaryConfidence}};
  json["time_seconds"] =
      SpreadJson(report.runs, [](const Run& run) { return run.measurement.time.count(); });
  json["total_energy_joules"] =
      SpreadJson(report.runs, [](const Run& run) -> std::optional<double> {
        const Measurement::Total total = run.measurement.Sum();
        if (total.contains.empty()) return std::nullopt;
        return total.energy.value();
      });
  Json devices = Json::array();
  for (const DeviceMeasurement& device : report.runs.front().measurement.devices) {
    const std::string& name = device.device;
    const auto energy = [&name](const Run& run) -> std::optional<double> {
      const DeviceMeasurement* found = run.measurement.Find(name);
      if (found == nullptr || !found->energy.ok()) return std::nullopt;
      return found->energy.value().energy.value();
    };
    devices.push_back({{"device", name}, {"energy_joules", SpreadJson(report.runs, energy)}});
  }
  json["devices"] = std::move(devices);
  return json;
}

}  // namespace

Json ToJson(const RunReport& report) {
  Json json = {{"schema", kSchema}, {"command", report.command}};
  if (!report.label.empty()) json["label"] = report.label;
  json["host"] = report.host;
  AddRun(json, report, MeanOf(report.runs));
  if (!report.remarks.empty()) json["remarks"] = report.remarks;
  if (report.carbon) AddTo(json, *report.carbon);
  if (!report.planned_runs) return json;
  json["planned_runs"] = *report.planned_runs;
  json["warmup_runs"] = report.warmup_runs;
  json["summary"] = SummaryJson(report);
  Json runs = Json::array();
  for (const Run& run : report.runs) {
    Json one = Json::object();
    AddRun(one, report, run);
    runs.push_back(std::move(one));
  }
  json["runs"] = std::move(runs);
  return json;
}

}  // namespace zeus::cli
