// A RunReport as JSON: schema "zeus.run/1", see docs/formats.md.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

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

Json RanksJson(const JobMeasurement& job) {
  Json ranks = Json::array();
  for (const JobMeasurement::Rank& rank : job.ranks)
    ranks.push_back({{"rank", rank.rank},
                     {"host", rank.host},
                     {"exit_code", rank.exit_code ? Json(*rank.exit_code) : Json(nullptr)}});
  Json nodes = Json::array();
  for (const JobMeasurement::Node& node : job.nodes)
    nodes.push_back({{"host", node.host},
                     {"ranks", node.ranks},
                     {"time_seconds", node.time.count()},
                     {"total", zeus::ToJson(node.total)}});
  return {{"size", job.ranks.size() + job.missing.size()},
          {"met", std::move(ranks)},
          {"missing", job.missing},
          {"nodes", std::move(nodes)}};
}

}  // namespace

Json ToJson(const RunReport& report) {
  Json json = {{"schema", kSchema}, {"command", report.command}};
  if (!report.label.empty()) json["label"] = report.label;
  json["host"] = report.host;
  AddRun(json, report, MeanRun(report.runs));
  if (!report.remarks.empty()) json["remarks"] = report.remarks;
  if (report.ranks) json["ranks"] = RanksJson(*report.ranks);
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

// A RunReport as rows of CSV, see docs/formats.md.

namespace {

constexpr std::array<std::string_view, 19> kColumns = {"started",
                                                       "host",
                                                       "label",
                                                       "command",
                                                       "run",
                                                       "exit_code",
                                                       "time_seconds",
                                                       "device",
                                                       "uuid",
                                                       "energy_joules",
                                                       "energy_sigma_joules",
                                                       "attributed_joules",
                                                       "net_energy_joules",
                                                       "net_energy_sigma_joules",
                                                       "average_power_watts",
                                                       "source",
                                                       "updates",
                                                       "flags",
                                                       "reason"};

std::string Field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string Row(const auto& fields) {
  std::string row;
  for (const auto& field : fields) row += (row.empty() ? "" : ",") + Field(field);
  return row + '\n';
}

// The columns that belong to a device or to the total.
struct Energies {
  std::string device;
  std::string uuid{};
  std::string energy{};
  std::string sigma{};
  std::string attributed{};
  std::string net{};
  std::string net_sigma{};
  std::string power{};
  std::string source{};
  std::string updates{};
  std::string flags{};
  std::string reason{};
};

void SetNet(Energies& row, const NetEnergy& net) {
  row.net = fmt::to_string(net.energy.value());
  row.net_sigma = fmt::to_string(net.sigma.value());
}

std::string PowerField(Joules energy, Seconds time) {
  return time.count() > 0 ? fmt::to_string((energy / time).value()) : "";
}

Energies DeviceRow(const RunReport& report, const DeviceMeasurement& device, Seconds time) {
  Energies row{.device = device.device};
  const auto identity = std::ranges::find(report.devices, device.device, &DeviceIdentity::device);
  if (identity != report.devices.end()) row.uuid = identity->uuid;
  if (!device.energy.ok()) {
    row.reason = device.energy.error().message;
    return row;
  }
  const EnergyEstimate& estimate = device.energy.value();
  row.energy = fmt::to_string(estimate.energy.value());
  row.sigma = fmt::to_string(estimate.sigma.value());
  row.attributed = fmt::to_string(estimate.attributed.value());
  row.power = PowerField(estimate.energy, time);
  row.source = EnergySourceName(estimate.source);
  row.updates = fmt::to_string(estimate.updates);
  row.flags = fmt::format("{}", fmt::join(estimate.flags.Names(), " "));
  if (const auto net = ComputeNetEnergy(device, time, report.idle)) SetNet(row, *net);
  return row;
}

Energies TotalRow(const RunReport& report, const Measurement& measurement) {
  Energies row{.device = "total"};
  const Measurement::Total total = measurement.Sum();
  if (total.contains.empty()) {
    row.reason = "no device could be measured";
    return row;
  }
  row.energy = fmt::to_string(total.energy.value());
  row.sigma = fmt::to_string(total.sigma.value());
  row.attributed = fmt::to_string(total.attributed.value());
  row.power = PowerField(total.energy, measurement.time);
  if (!total.missing.empty()) row.reason = fmt::format("without {}", fmt::join(total.missing, " "));
  if (const NetTotal net = ComputeNetTotal(measurement, report.idle); !net.contains.empty())
    SetNet(row, net.net);
  return row;
}

}  // namespace

std::string CsvHeader() { return Row(kColumns); }

std::string ToCsv(const RunReport& report, std::size_t index) {
  const Run& run = report.runs[index];
  const Measurement& measurement = run.measurement;
  std::vector<Energies> rows;
  for (const DeviceMeasurement& device : measurement.devices)
    rows.push_back(DeviceRow(report, device, measurement.time));
  rows.push_back(TotalRow(report, measurement));
  std::string text;
  for (const Energies& row : rows) {
    const std::array<std::string, kColumns.size()> fields = {
        ToExactText(measurement.started),
        report.host,
        report.label,
        fmt::format("{}", fmt::join(report.command, " ")),
        fmt::to_string(index + 1),
        fmt::to_string(run.exit_code),
        fmt::to_string(measurement.time.count()),
        row.device,
        row.uuid,
        row.energy,
        row.sigma,
        row.attributed,
        row.net,
        row.net_sigma,
        row.power,
        row.source,
        row.updates,
        row.flags,
        row.reason};
    text += Row(fields);
  }
  return text;
}

}  // namespace zeus::cli
