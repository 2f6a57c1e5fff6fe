// A RunReport for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/zeus/run/report.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/statistics.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

std::string AveragePowerText(Joules energy, Seconds time) {
  return time.count() > 0 ? PowerText(energy / time) : "-";
}

// The time in seconds, and also in hours where it is long.
std::string ElapsedText(Seconds time) {
  const double seconds = time.count();
  if (seconds < 0.1) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 600) return fmt::format("{:.3f} s", seconds);
  const auto whole = static_cast<long>(std::lround(seconds));
  return fmt::format("{:.1f} s ({} h {:02} min {:02} s)", seconds, whole / 3600, whole / 60 % 60,
                     whole % 60);
}

// The scatter between runs: "1.2 J (0.8 %)".
std::string SpreadText(const std::vector<double>& values, const char* unit) {
  if (values.size() < 2) return "-";
  const SampleSummary summary = Summarize(values);
  const double deviation = summary.StandardDeviation();
  const int decimals = deviation < 1 ? 3 : 1;
  if (summary.mean <= 0) return fmt::format("{:.{}f} {}", deviation, decimals, unit);
  return fmt::format("{:.{}f} {} ({:.1f} %)", deviation, decimals, unit,
                     100 * deviation / summary.mean);
}

// Which columns a table has beside the ones that are always there.
struct Columns {
  bool net = false;
  bool attributed = false;
  bool spread = false;
};

class Table {
 public:
  explicit Table(const RunReport& report) : report_(report), mean_(MeanOf(report.runs)) {
    columns_ = {.net = !report.idle.empty(), .spread = report.runs.size() > 1};
    for (const DeviceMeasurement& device : mean_.measurement.devices)
      if (device.energy.ok() && device.energy.value().flags.Has(MeasurementFlag::kShared))
        columns_.attributed = true;
  }

  std::string Rows() {
    Add("device", {.energy = "energy",
                   .net = "above idle",
                   .attributed = "of this command",
                   .spread = "spread",
                   .power = "power",
                   .source = "source"});
    int numbers = 0;
    for (const DeviceMeasurement& device : mean_.measurement.devices) {
      if (!device.energy.ok()) continue;
      AddDevice(device);
      ++numbers;
    }
    if (numbers == 0) return "";
    AddTotal();
    std::vector<Align> alignment(rows_.front().size(), Align::kRight);
    alignment.front() = alignment.back() = Align::kLeft;
    return AlignedRows(alignment, rows_);
  }

  const Run& mean() const { return mean_; }

 private:
  struct Cells {
    std::string energy;
    std::string net;
    std::string attributed;
    std::string spread;
    std::string power;
    std::string source;
  };

  void Add(const std::string& device, const Cells& cells) {
    std::vector<std::string> row = {"  " + device, cells.energy};
    if (columns_.net) row.push_back(cells.net);
    if (columns_.attributed) row.push_back(cells.attributed);
    if (columns_.spread) row.push_back(cells.spread);
    row.push_back(cells.power);
    row.push_back(cells.source);
    rows_.push_back(std::move(row));
  }

  void AddDevice(const DeviceMeasurement& device) {
    const EnergyEstimate& estimate = device.energy.value();
    const Seconds time = mean_.measurement.time;
    std::vector<double> values;
    for (const Run& run : report_.runs) {
      const DeviceMeasurement* one = run.measurement.Find(device.device);
      if (one != nullptr && one->energy.ok()) values.push_back(one->energy.value().energy.value());
    }
    const auto net = ComputeNetEnergy(device, time, report_.idle);
    Add(device.device,
        {.energy = WithSigma(estimate.energy, estimate.sigma),
         .net = net ? WithSigma(net->energy, net->sigma) : "-",
         .attributed = fmt::format("{:.1f} J", estimate.attributed.value()),
         .spread = SpreadText(values, "J"),
         .power = AveragePowerText(estimate.energy, time),
         .source = fmt::format("{}, {} update{}{}", EnergySourceName(estimate.source),
                               estimate.updates, estimate.updates == 1 ? "" : "s",
                               device.in_total ? "" : ", not in the total")});
  }

  void AddTotal() {
    const Measurement::Total total = mean_.measurement.Sum();
    if (total.contains.empty()) return;
    std::vector<double> values;
    for (const Run& run : report_.runs) values.push_back(run.measurement.Sum().energy.value());
    const NetTotal net = ComputeNetTotal(mean_.measurement, report_.idle);
    Add("total", {.energy = WithSigma(total.energy, total.sigma),
                  .net = net.contains.empty() ? "-" : WithSigma(net.net.energy, net.net.sigma),
                  .attributed = fmt::format("{:.1f} J", total.attributed.value()),
                  .spread = SpreadText(values, "J"),
                  .power = AveragePowerText(total.energy, mean_.measurement.time),
                  .source = ""});
  }

  const RunReport& report_;
  Run mean_;
  Columns columns_;
  std::vector<std::vector<std::string>> rows_;
};

// One line per kind of doubt, naming the devices that share it.
std::string Doubts(const Measurement& measurement) {
  std::map<std::string, std::vector<std::string>> devices_of;
  for (const DeviceMeasurement& device : measurement.devices) {
    if (!device.energy.ok()) {
      if (device.in_total)
        devices_of["not measured: " + device.energy.error().message].push_back(device.device);
      continue;
    }
    for (const std::string_view flag : device.energy.value().flags.Names())
      devices_of[FlagMeaning(flag)].push_back(device.device);
  }
  std::string text;
  for (const auto& [what, devices] : devices_of)
    text += fmt::format("  {}: {}\n", fmt::join(devices, ", "), what);
  return text;
}

std::string Heading(const RunReport& report, const Run& mean) {
  std::string command = Printable(fmt::format("{}", fmt::join(report.command, " ")));
  std::string text = fmt::format("zeus run: {}\n", command);
  if (!report.label.empty()) text += fmt::format("  label  {}\n", Printable(report.label));
  text += fmt::format("  time   {}", ElapsedText(mean.measurement.time));
  if (report.planned_runs) {
    std::vector<double> times;
    for (const Run& run : report.runs) times.push_back(run.measurement.time.count());
    text += fmt::format(" (mean of {} run{}, spread {})", report.runs.size(),
                        report.runs.size() == 1 ? "" : "s", SpreadText(times, "s"));
  }
  if (mean.exit_code != 0) text += fmt::format(", exit code {}", mean.exit_code);
  return text + "\n";
}

}  // namespace

const char* FlagMeaning(std::string_view flag) {
  static const std::map<std::string_view, const char*> kMeaning = {
      {"counter_reset", "the energy counter started again: at least this much was used"},
      {"stale_counter", "the energy counter stood still although time passed"},
      {"short_window", "shorter than three updates of the sensor: mostly uncertainty"},
      {"limit_changed", "the power limit was changed meanwhile"},
      {"throttled", "the device slowed itself down (heat, or a power cap)"},
      {"sensor_aliasing_possible", "the sensor saw only a part of an uneven load"},
      {"estimated", "estimated, not read from the device"},
      {"partial", "could not be read during a part of the time"},
      {"shared", "other processes or windows used the device too"},
      {"preview", "the sensor has not shown the end yet"},
  };
  const auto found = kMeaning.find(flag);
  return found == kMeaning.end() ? "" : found->second;
}

std::string ToTable(const RunReport& report) {
  Table table(report);
  const Run& mean = table.mean();
  std::string text = Heading(report, mean);
  const std::string rows = table.Rows();
  text += rows;
  if (rows.empty()) text += "  no energy: no sensor could be read here (zeus doctor says why)\n";
  text += Doubts(mean.measurement);
  for (const std::string& remark : report.remarks) text += fmt::format("  {}\n", remark);
  if (report.carbon)
    for (const std::string& line : ToLines(*report.carbon)) text += fmt::format("  {}\n", line);
  if (rows.empty()) return text;
  text += "  ± is one standard deviation of the measurement";
  if (report.runs.size() > 1) text += ", spread is that between the runs";
  if (!report.idle.empty()) {
    text += "\n  idle power subtracted:";
    for (const IdlePower& idle : report.idle)
      text += fmt::format(" {} {:.1f} W", idle.device, idle.power.value());
  }
  return text + "\n";
}

}  // namespace zeus::cli
