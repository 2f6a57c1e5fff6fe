// A RunReport as JSON: schema "zeus.run/1", see docs/formats.md.
#include <algorithm>
#include <cmath>
#include <functional>

#include "apps/zeus/run/report.h"
#include "zeus/base/json.h"
#include "zeus/base/statistics.h"

namespace zeus::cli {
namespace {

constexpr const char* kSchema = "zeus.run/1";
constexpr double kSummaryConfidence = 0.95;

// JSON has no infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json AveragePower(Joules energy, Seconds time) {
  return time.count() > 0 ? Json((energy / time).value()) : Json(nullptr);
}

void AddNumbers(Json& json, const EnergyEstimate& estimate, Seconds time) {
  json["energy_joules"] = estimate.energy.value();
  json["energy_sigma_joules"] = estimate.sigma.value();
  json["attributed_joules"] = estimate.attributed.value();
  json["average_power_watts"] = AveragePower(estimate.energy, time);
  json["source"] = EnergySourceName(estimate.source);
  json["coverage"] = estimate.coverage;
  json["updates"] = estimate.updates;
  json["flags"] = estimate.flags.Names();
  json["update_period_seconds"] = estimate.update_period.count();
}

void AddReason(Json& json, const std::string& reason) {
  for (const char* field : {"energy_joules", "energy_sigma_joules", "attributed_joules",
                            "average_power_watts", "source", "coverage", "updates"})
    json[field] = nullptr;
  json["flags"] = Json::array();
  json["reason"] = reason;
}

Json DeviceJson(const RunReport& report, const DeviceMeasurement& device, Seconds time) {
  Json json = {{"device", device.device}};
  const auto identity = std::ranges::find(report.devices, device.device, &DeviceIdentity::device);
  if (identity != report.devices.end() && !identity->model.empty()) json["model"] = identity->model;
  if (identity != report.devices.end() && !identity->uuid.empty()) json["uuid"] = identity->uuid;
  if (device.energy.ok()) {
    AddNumbers(json, device.energy.value(), time);
  } else {
    AddReason(json, device.energy.error().message);
  }
  json["in_total"] = device.in_total;
  const auto idle = std::ranges::find(report.idle, device.device, &IdlePower::device);
  if (const auto net = NetOf(device, time, report.idle)) {
    json["idle_power_watts"] = idle->power.value();
    json["net_energy_joules"] = net->energy.value();
    json["net_energy_sigma_joules"] = net->sigma.value();
  }
  return json;
}

Json TotalJson(const RunReport& report, const Measurement& measurement) {
  const Measurement::Total total = measurement.Sum();
  Json json;
  if (total.contains.empty()) {
    json = {{"energy_joules", nullptr},
            {"energy_sigma_joules", nullptr},
            {"attributed_joules", nullptr},
            {"average_power_watts", nullptr}};
  } else {
    json = {{"energy_joules", total.energy.value()},
            {"energy_sigma_joules", total.sigma.value()},
            {"attributed_joules", total.attributed.value()},
            {"average_power_watts", AveragePower(total.energy, measurement.time)}};
  }
  json["contains"] = total.contains;
  json["missing"] = total.missing;
  if (const NetTotal net = NetTotalOf(measurement, report.idle); !net.contains.empty()) {
    json["net_energy_joules"] = net.net.energy.value();
    json["net_energy_sigma_joules"] = net.net.sigma.value();
    json["net_contains"] = net.contains;
  }
  return json;
}

// What is said of one run, and of the mean of several.
void AddRun(Json& json, const RunReport& report, const Run& run) {
  const Measurement& measurement = run.measurement;
  json["started"] = Rfc3339(measurement.started);
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
          {"interval_low", Number(interval.low)},
          {"interval_high", Number(interval.high)}};
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
