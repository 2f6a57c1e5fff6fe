// A RunReport as rows of CSV, see docs/formats.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "apps/zeus/run/report.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::cli {
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
