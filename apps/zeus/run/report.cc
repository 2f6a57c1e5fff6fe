#include "apps/zeus/run/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "zeus/base/quantity_text.h"
#include "zeus/base/statistics.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// The mean of what the runs say about one device.
DeviceMeasurement MeanOfDevice(const std::vector<Run>& runs, std::size_t index) {
  const DeviceMeasurement& first = runs.front().measurement.devices[index];
  DeviceMeasurement mean = first;
  EnergyEstimate sum{};
  double coverage = 0;
  int known = 0;
  for (const Run& run : runs) {
    const DeviceMeasurement& device = run.measurement.devices[index];
    if (!device.energy.ok()) continue;
    const EnergyEstimate& one = device.energy.value();
    sum.energy += one.energy;
    sum.sigma += one.sigma;
    sum.shared_sigma += one.shared_sigma;
    sum.attributed += one.attributed;
    sum.updates += one.updates;
    coverage += one.coverage;
    sum.flags = sum.flags | one.flags;
    sum.source = one.source;
    sum.update_period = one.update_period;
    ++known;
  }
  if (known == 0) return mean;
  sum.energy = sum.energy / known;
  sum.sigma = sum.sigma / known;
  sum.shared_sigma = sum.shared_sigma / known;
  sum.attributed = sum.attributed / known;
  sum.updates /= known;
  sum.coverage = coverage / known;
  mean.energy = sum;
  return mean;
}

}  // namespace

std::optional<NetEnergy> ComputeNetEnergy(const DeviceMeasurement& device, Seconds time,
                                          const std::vector<IdlePower>& idle) {
  const auto found = std::ranges::find(idle, device.device, &IdlePower::device);
  if (found == idle.end() || !device.energy.ok()) return std::nullopt;
  const EnergyEstimate& gross = device.energy.value();
  return NetEnergy{.energy = gross.energy - found->power * time,
                   .sigma = Joules(std::hypot(gross.sigma.value(), (found->sigma * time).value()))};
}

NetTotal ComputeNetTotal(const Measurement& measurement, const std::vector<IdlePower>& idle) {
  NetTotal total;
  for (const DeviceMeasurement& device : measurement.devices) {
    if (!device.in_total) continue;
    const auto net = ComputeNetEnergy(device, measurement.time, idle);
    if (!net) continue;
    total.net.energy += net->energy;
    total.net.sigma = Joules(std::hypot(total.net.sigma.value(), net->sigma.value()));
    total.contains.push_back(device.device);
  }
  return total;
}

Run MeanRun(const std::vector<Run>& runs) {
  Run mean = runs.front();
  mean.exit_code = runs.back().exit_code;
  mean.measurement.time = Seconds(0);
  for (const Run& run : runs)
    mean.measurement.time += run.measurement.time / static_cast<double>(runs.size());
  for (std::size_t i = 0; i < mean.measurement.devices.size(); ++i)
    mean.measurement.devices[i] = MeanOfDevice(runs, i);
  return mean;
}

// A RunReport for people.

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

// "3 GPUs, 1 other"
std::string DevicesText(const std::vector<std::string>& names) {
  const auto gpus = std::ranges::count_if(
      names, [](const std::string& name) { return name.find("gpu:") != std::string::npos; });
  const auto others = static_cast<std::ptrdiff_t>(names.size()) - gpus;
  std::string text = fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s");
  if (others > 0) text += fmt::format(", {} other{}", others, others == 1 ? "" : "s");
  return text;
}

// "0-3 7" of sorted numbers.
std::string RangesText(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : " ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

// How many ranks report, and which do not.
std::string RanksText(const JobMeasurement& job) {
  const std::size_t all = job.ranks.size() + job.missing.size();
  std::string text = fmt::format("  ranks  {} on {} node{}\n", all, job.nodes.size(),
                                 job.nodes.size() == 1 ? "" : "s");
  std::vector<int> lost;
  for (const JobMeasurement::Rank& rank : job.ranks) {
    if (!rank.exit_code) lost.push_back(rank.rank);
    if (rank.exit_code.value_or(0) != 0)
      text += fmt::format("  rank {} on {}: exit code {}\n", rank.rank, rank.host, *rank.exit_code);
  }
  if (!lost.empty())
    text += fmt::format("  lost before the end: rank{} {}\n", lost.size() == 1 ? "" : "s",
                        RangesText(lost));
  if (!job.missing.empty())
    text += fmt::format(
        "  not met: rank{} {}; the energy is that of the others (docs/mpi.md says how ranks "
        "meet)\n",
        job.missing.size() == 1 ? "" : "s", RangesText(job.missing));
  return text;
}

// Which columns a table has beside the ones that are always there.
struct Columns {
  bool net = false;
  bool attributed = false;
  bool spread = false;
};

class Table {
 public:
  explicit Table(const RunReport& report) : report_(report), mean_(MeanRun(report.runs)) {
    columns_ = {.net = !report.idle.empty(), .spread = report.runs.size() > 1};
    for (const DeviceMeasurement& device : mean_.measurement.devices)
      if (device.energy.ok() && device.energy.value().flags.Has(MeasurementFlag::kShared))
        columns_.attributed = true;
  }

  std::string Rows() {
    Add(report_.ranks ? "node" : "device", {.energy = "energy",
                                            .net = "above idle",
                                            .attributed = "of this command",
                                            .spread = "spread",
                                            .power = "power",
                                            .source = report_.ranks ? "devices" : "source"});
    int numbers = 0;
    for (const DeviceMeasurement& device : mean_.measurement.devices) {
      if (!device.energy.ok()) continue;
      if (!report_.ranks) AddDevice(device);
      ++numbers;
    }
    if (numbers == 0) return "";
    if (report_.ranks && report_.rows == RunReport::Rows::kNodes)
      for (const JobMeasurement::Node& node : report_.ranks->nodes) AddNode(node);
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

  void AddNode(const JobMeasurement::Node& node) {
    const bool known = !node.total.contains.empty();
    Add(node.host,
        {.energy = known ? WithSigma(node.total.energy, node.total.sigma) : "-",
         .net = "-",
         .attributed = fmt::format("{:.1f} J", node.total.attributed.value()),
         .spread = "-",
         .power = known ? AveragePowerText(node.total.energy, mean_.measurement.time) : "-",
         .source = fmt::format("{}, rank{} {}", DevicesText(node.total.contains),
                               node.ranks.size() == 1 ? "" : "s", RangesText(node.ranks))});
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
                  .source = report_.ranks ? DevicesText(total.contains) : ""});
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
  if (report.ranks) text += RanksText(*report.ranks);
  const std::string rows = table.Rows();
  text += rows;
  if (rows.empty()) text += "  no energy: no sensor could be read here (zeus doctor says why)\n";
  text += Doubts(mean.measurement);
  for (const std::string& remark : report.remarks) text += fmt::format("  {}\n", remark);
  if (report.carbon && !rows.empty())  // Without energy there would be 0 g, which is false.
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

// Where each number of a RunReport comes from, for people: `zeus run --explain`.

namespace {

// "± 2.3 J"
std::string Sigma(Joules sigma) { return "± " + EnergyText(sigma); }

std::string Period(Seconds period) {
  const double milliseconds = period.count() * 1e3;
  return fmt::format("{:.{}f} ms", milliseconds, milliseconds < 10 ? 1 : 0);
}

std::string SourceText(const EnergyEstimate& estimate) {
  switch (estimate.source) {
    case EnergySource::kCounter:
      return "the device's own energy counter, its value at the end less that at the start";
    case EnergySource::kIntegrated:
      return "readings of the device's power, summed over time: it has no energy counter";
    case EnergySource::kModel:
      break;
  }
  return "an estimate, not a reading of this device";
}

std::string UpdatesText(const EnergyEstimate& estimate) {
  std::string text = fmt::format("{} new value{} of the sensor in that time", estimate.updates,
                                 estimate.updates == 1 ? "" : "s");
  if (estimate.update_period.count() > 0)
    text += fmt::format(", which shows one every {}", Period(estimate.update_period));
  return text + fmt::format("; it observed {:.0f} % of the time", 100 * estimate.coverage);
}

std::string StageText(Measurement::Stage stage) {
  return stage == Measurement::Stage::kRefined
             ? "refined: Zeus waited until the sensor had shown the end of the command"
             : "immediate: the sensor had not yet shown the end of the command (--refine always "
               "waits for it)";
}

// Both parts of sigma, which add as squares.
std::string SigmaText(const EnergyEstimate& estimate, bool calibrated) {
  const double all = estimate.sigma.value();
  const double shared = std::min(estimate.shared_sigma.value(), all);
  const Joules own(std::sqrt(all * all - shared * shared));
  return fmt::format(
      "{} = {} of the sensor itself, the same in every run ({}), and {} of this run: what happened "
      "between updates at its start and end, and in gaps; their squares add",
      Sigma(estimate.sigma), Sigma(Joules(shared)),
      calibrated ? "measured on this board by zeus calibrate"
                 : "published measurements of such boards; zeus calibrate measures this one",
      Sigma(own));
}

void ExplainDevice(const RunReport& report, const Run& mean, const DeviceMeasurement& device,
                   std::string& text) {
  const auto identity = std::ranges::find(report.devices, device.device, &DeviceIdentity::device);
  const bool known = identity != report.devices.end();
  text += fmt::format("  {}{}\n", device.device,
                      known && !identity->model.empty() ? ", " + identity->model : "");
  if (!device.energy.ok()) {
    text += fmt::format("    no number: {}\n", device.energy.error().message);
    return;
  }
  const EnergyEstimate& estimate = device.energy.value();
  text += fmt::format("    energy: {}\n", SourceText(estimate));
  text += fmt::format("    updates: {}\n", UpdatesText(estimate));
  text += fmt::format("    stage: {}\n", StageText(mean.measurement.stage));
  text += fmt::format("    {}\n", SigmaText(estimate, known && identity->calibrated));
  text += "    power: energy divided by time\n";
  if (estimate.flags.Has(MeasurementFlag::kShared))
    text += fmt::format(
        "    of this command: {:.1f} J, the part of the energy that is left when other processes "
        "and windows that Zeus measures have theirs\n",
        estimate.attributed.value());
  if (const auto net = ComputeNetEnergy(device, mean.measurement.time, report.idle)) {
    const auto idle = std::ranges::find(report.idle, device.device, &IdlePower::device);
    text += fmt::format("    above idle: energy less {:.1f} W of idle power {} times the time\n",
                        idle->power.value(),
                        idle->sigma.value() > 0 ? "measured before the command" : "as given");
  }
  for (const std::string_view flag : estimate.flags.Names())
    text += fmt::format("    flag {}: {}\n", flag, FlagMeaning(flag));
}

}  // namespace

std::string ToExplanation(const RunReport& report) {
  const Run mean = MeanRun(report.runs);
  std::string text = "where the numbers come from\n";
  text +=
      "  time: of the machine's monotonic clock, from just before the command is started until it "
      "has ended\n";
  if (report.runs.size() > 1)
    text += fmt::format(
        "  several runs: numbers are means of {}; ± stays that of one measurement, spread is the "
        "standard deviation between runs\n",
        report.runs.size());
  for (const DeviceMeasurement& device : mean.measurement.devices)
    ExplainDevice(report, mean, device, text);
  const Measurement::Total total = mean.measurement.Sum();
  if (!total.contains.empty())
    text += fmt::format(
        "  total: the sum of {}{}; the boards' errors are independent, so squares of ± add\n",
        fmt::join(total.contains, ", "),
        total.missing.empty() ? "" : fmt::format(", without {}", fmt::join(total.missing, ", ")));
  return text;
}

}  // namespace zeus::cli
