#include "apps/zeus/profile/sweep_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "zeus/base/process.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/version.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::cli {
namespace {

using report::Cell;

// A quantity against the setting of the knob.
struct Curve {
  struct Point {
    double x;  // The setting, as a number.
    double y;
    double sigma;
    std::size_t row;  // Index in SweepReport::rows.
  };
  std::string name;  // "energy per step"
  std::string unit;
  std::vector<Point> points{};
};

// Expresses a whole curve in the unit with the prefix that suits its largest value.
void Scale(Curve& curve) {
  double largest = 0;
  for (const Curve::Point& point : curve.points) largest = std::max(largest, point.y);
  const SiPrefix prefix = PrefixFor(largest);
  for (Curve::Point& point : curve.points) {
    point.y /= prefix.scale;
    point.sigma /= prefix.scale;
  }
  curve.unit.insert(0, prefix.text);
}

// Energy and time per step, or power alone where steps are unknown; none without rows.
std::vector<Curve> CurvesFor(const SweepReport& report) {
  Curve power{.name = "power", .unit = "W"};
  Curve energy{.name = "energy per step", .unit = "J"};
  Curve time{.name = "time per step", .unit = "s"};
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const SweepRow& row = report.rows[i];
    const double x = ToNumber(row.setting);
    power.points.push_back({x, row.power.value(), row.power_sigma.value(), i});
    if (!row.per_step) continue;
    energy.points.push_back(
        {x, row.per_step->energy.value(), row.per_step->energy_sigma.value(), i});
    time.points.push_back({x, row.per_step->time.count(), row.per_step->time_sigma.count(), i});
  }
  if (power.points.empty()) return {};
  for (Curve* const curve : {&power, &energy, &time}) Scale(*curve);
  if (!KnowsSteps(report)) return {power};
  return {energy, time};
}

const char* SettingTitle(KnobKind knob) {
  switch (knob) {
    case KnobKind::kGpuPowerLimit:
      return "power limit of each GPU (W)";
    case KnobKind::kGraphicsClock:
      return "graphics clock (MHz)";
    case KnobKind::kCpuPowerLimit:
      return "power limit of each CPU (W)";
    case KnobKind::kMemoryClock:
      return "memory clock (MHz)";
  }
  return "";
}

void AddPoint(report::Series& series, const SweepReport& report, const Curve& curve,
              const Curve::Point& point) {
  series.x.push_back(point.x);
  series.y.push_back(point.y);
  series.low.push_back(point.y - point.sigma);
  series.high.push_back(point.y + point.sigma);
  series.labels.push_back(fmt::format("{}: {} {}", ToText(report.rows[point.row].setting),
                                      WithSigma(point.y, point.sigma, ""), curve.unit));
}

report::Series SeriesFor(const SweepReport& report, const Curve& curve) {
  report::Series series{.name = curve.name, .role = "zeus"};
  for (const Curve::Point& point : curve.points) AddPoint(series, report, curve, point);
  return series;
}

// "175 W: best for energy, cost (eta 0.5)"; empty where no objective chooses the row.
std::string ChoiceText(const SweepReport& report, std::size_t row) {
  const std::vector<std::string> chosen = ChosenBy(report, row);
  if (chosen.empty()) return "";
  return fmt::format("{}: best for {}", ToText(report.rows[row].setting), fmt::join(chosen, ", "));
}

report::Panel PanelFor(const SweepReport& report, const Curve& curve) {
  report::Panel panel{.title = curve.name,
                      .x = {.title = SettingTitle(report.knob)},
                      .y = {.title = fmt::format("{} ({})", curve.name, curve.unit)},
                      .series = {SeriesFor(report, curve)}};
  panel.series.front().name = "measured";  // The same in both panels: one entry of the legend.
  for (const Curve::Point& point : curve.points) {
    const std::string chosen = ChoiceText(report, point.row);
    if (chosen.empty()) continue;
    report::Series& mark = panel.series.emplace_back();
    mark = {.name = chosen, .mark = report::Mark::kPoints};
    AddPoint(mark, report, curve, point);
  }
  return panel;
}

Cell Measured(double value, double sigma, const char* unit) {
  return {WithSigma(value, sigma, unit), value};
}

std::vector<Cell> TableRow(const SweepReport& report, std::size_t index) {
  const SweepRow& row = report.rows[index];
  const SweepRow& first = report.rows.front();
  const Cell unknown{.text = "unknown"};
  // The most important first: a narrow page cuts the last columns.
  std::vector<Cell> cells = {{ToText(row.setting), ToNumber(row.setting)},
                             {.text = fmt::format("{}", fmt::join(ChosenBy(report, index), ", "))}};
  Cell energy_change = unknown;
  Cell time_change = unknown;
  if (row.per_step && first.per_step) {
    const double energy = row.per_step->energy / first.per_step->energy;
    const double time = row.per_step->time / first.per_step->time;
    energy_change = {ChangeText(energy, 1), energy - 1};
    time_change = {ChangeText(time, 1), time - 1};
  }
  const auto& step = row.per_step;
  cells.push_back(step ? Measured(step->energy.value(), step->energy_sigma.value(), "J") : unknown);
  cells.push_back(energy_change);
  cells.push_back(step ? Measured(step->time.count(), step->time_sigma.count(), "s") : unknown);
  cells.push_back(time_change);
  cells.push_back(Measured(row.power.value(), row.power_sigma.value(), "W"));
  cells.push_back(step ? Measured(step->Rate(), step->RateSigma(), "/s") : unknown);
  return cells;
}

report::Table SettingsTable(const SweepReport& report) {
  report::Table table{.id = "settings",
                      .title = "Energy, time and power by setting",
                      .columns = {"setting", "best for", "energy per step", "Δ energy",
                                  "time per step", "Δ time", "power", "throughput"}};
  for (std::size_t i = 0; i < report.rows.size(); ++i) table.rows.push_back(TableRow(report, i));
  if (!report.rows.empty())
    table.caption = fmt::format(
        "± is one standard deviation, also in the figure; Δ is against {}. It leaves out the gain "
        "of the sensors ({}), which all rows share.",
        ToText(report.rows.front().setting), PercentText(report.shared_error));
  return table;
}

report::Table Circumstances(const SweepReport& report) {
  report::Table table{
      .id = "circumstances", .title = "Circumstances", .columns = {"what", "value"}};
  const auto add = [&table](const char* name, const std::string& value) {
    if (!value.empty()) table.rows.push_back({{.text = name}, {.text = value}});
  };
  add("label", report.label);
  add("knob", report.knob_name);
  for (const JobKnob::Device& device : report.devices)
    add("device", fmt::format("{} {} {}", device.name, device.model, device.uuid));
  add("driver", report.driver);
  add("host", HostName());
  add("date", ToText(report.started));
  add("slices", fmt::format("{} of {:g} s, each after {:g} s of warm-up", report.slices.size(),
                            report.plan.slice.count(), report.plan.warmup.count()));
  add("made by", "zeus " + std::string(Version()));
  return table;
}

}  // namespace

report::Figure ToFigure(const SweepReport& report) {
  report::Figure figure{.id = "sweep",
                        .title = fmt::format("Power sweep of {}", fmt::join(report.command, " "))};
  const std::vector<Curve> curves = CurvesFor(report);
  if (curves.empty()) {
    figure.caption = "Nothing was measured.";
    return figure;
  }
  std::vector<std::string> names;
  for (const Curve& curve : curves) {
    names.push_back(curve.name);
    figure.panels.push_back(PanelFor(report, curve));
  }
  figure.caption =
      fmt::format("{} against the {}, from {} to {}.", fmt::join(names, " and "), report.knob_name,
                  ToText(report.rows.front().setting), ToText(report.rows.back().setting));
  figure.caption.front() = static_cast<char>(std::toupper(figure.caption.front()));
  return figure;
}

report::Panel ToRelativePanel(const SweepReport& report) {
  std::vector<Curve> curves = CurvesFor(report);
  report::Panel panel{.x = {.title = SettingTitle(report.knob)}};
  for (Curve& curve : curves) {
    const double whole = curve.points.front().y;
    if (whole <= 0) return {};
    if (curves.size() > 1) {
      for (Curve::Point& point : curve.points) {
        point.y *= 100 / whole;
        point.sigma *= 100 / whole;
      }
      curve.unit =
          fmt::format("% of those at {}", ToText(report.rows[curve.points.front().row].setting));
    }
    panel.y.title = curve.unit;
    panel.series.push_back(SeriesFor(report, curve));
  }
  return panel;
}

report::Report ToReport(const SweepReport& report) {
  report::Report page{.title = "Power sweep",
                      .subtitle = fmt::format("{}", fmt::join(report.command, " ")),
                      .remarks = NotesOn(report)};
  for (std::size_t i = 0; i < report.rows.size(); ++i)
    if (std::string chosen = ChoiceText(report, i); !chosen.empty())
      page.findings.push_back(chosen + ".");
  page.sections.push_back({.title = "Sweep", .figures = {ToFigure(report)}});
  if (!report.rows.empty())
    page.sections.push_back({.title = "Settings", .tables = {SettingsTable(report)}});
  page.sections.back().tables.push_back(Circumstances(report));
  return page;
}

}  // namespace zeus::cli
