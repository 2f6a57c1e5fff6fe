#include "apps/zeus/profile/profile_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/run/report.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/process.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/report/report.h"

// Sentences about what did not go as planned in a search.
namespace zeus::cli {
namespace {

std::string NoProgress(const ProfileReport& report) {
  return report.progress == ProgressSource::kFile
             ? "the progress file never changed while the command ran, so nothing was measured: "
               "its last line must be a number, or it must get a line per step"
             : "nothing in the command's output matched --progress, so nothing was measured: note "
               "that many programs print other lines, or later, when they do not write to a "
               "terminal";
}

std::string EndedEarly(const ProfileReport& report, const SearchEnd& end) {
  const auto slices = static_cast<double>(report.settings.size() * report.plan.rounds.value_or(1));
  const Seconds needed = end.before_search + slices * (report.plan.warmup + report.plan.slice);
  return fmt::format(
      "the command {} after {:.1f} s, before the sweep was done: it should run at least {:.0f} s "
      "({:.1f} s until its first step, {} slices of {:g} s)",
      end.interrupted ? "was interrupted" : "ended", end.ran.count(), std::ceil(needed.count()),
      end.before_search.count(), slices, Seconds(report.plan.warmup + report.plan.slice).count());
}

std::string TooFewSteps(const ProfileReport& report) {
  return fmt::format(
      "throughput is unknown where less than two changes of the progress were seen "
      "in a slice: make --slice longer than {:g} s",
      report.plan.slice.count());
}

}  // namespace

std::vector<std::string> NotesOn(const ProfileReport& report) {
  const SearchEnd& end = report.end;
  std::vector<std::string> notes;
  if (end.trouble) notes.push_back("the sweep was given up: " + end.trouble->message);
  for (const PowerLimitOptimizer::LeftOut& left_out : end.left_out)
    notes.push_back(
        fmt::format("a slice at {} is left out: {}", ToText(left_out.setting), left_out.reason));
  if (report.settings.size() == 1) {
    notes.push_back(fmt::format("the {} was tried at {} only: there is nothing to compare",
                                report.knob_name, ToText(report.settings.front())));
  }
  if (end.waiting && report.progress != ProgressSource::kNone) {
    notes.push_back(NoProgress(report));
    return notes;
  }
  // Without a number of rounds, one is enough.
  const bool early = !report.complete && !end.trouble && (end.command_ended || end.interrupted) &&
                     (report.plan.rounds || report.rows.size() < report.settings.size());
  if (early) notes.push_back(EndedEarly(report, end));
  if (report.progress == ProgressSource::kNone) {
    notes.emplace_back(
        "throughput is unknown, so no limit is called best: count the command's steps with "
        "--progress 'step (\\d+)' or --progress-file FILE");
  } else if (std::ranges::any_of(report.rows,
                                 [](const SettingRow& row) { return !row.per_step; })) {
    notes.push_back(TooFewSteps(report));
  }
  if (report.kept)
    notes.push_back(fmt::format("{} is set for the rest of the command", ToText(*report.kept)));
  return notes;
}

// A ProfileReport for people.

namespace {

constexpr const char* kUnknown = "unknown";

std::string Heading(const ProfileReport& report) {
  std::string text = fmt::format("zeus profile: {}\n",
                                 Printable(fmt::format("{}", fmt::join(report.command, " "))));
  if (!report.label.empty()) text += fmt::format("  label  {}\n", Printable(report.label));
  const std::size_t rounds = report.slices.empty() ? 0 : report.slices.back().round + 1;
  return text + fmt::format(
                    "  {}: {} of {} settings, up to {:g} s each after {:g} s of warm-up, {} "
                    "round{}\n",
                    report.knob_name, report.rows.size(), report.settings.size(),
                    report.plan.slice.count(), report.plan.warmup.count(), rounds,
                    rounds == 1 ? "" : "s");
}

std::vector<std::string> Cells(const ProfileReport& report, std::size_t index) {
  const SettingRow& row = report.rows[index];
  const SettingRow& highest = report.rows.front();
  std::vector<std::string> cells = {"  " + ToText(row.setting),
                                    WithSigma(row.power.value(), row.power_sigma.value(), "W")};
  if (row.per_step) {
    cells.push_back(WithSigma(row.per_step->Rate(), row.per_step->RateSigma(), "/s"));
    cells.push_back(
        WithSigma(row.per_step->energy.value(), row.per_step->energy_sigma.value(), "J"));
  } else {
    cells.insert(cells.end(), 2, kUnknown);
  }
  cells.push_back(ChangeText(row.power.value(), highest.power.value()));
  if (row.per_step && highest.per_step) {
    cells.push_back(ChangeText(row.per_step->time.count(), highest.per_step->time.count()));
    cells.push_back(ChangeText(row.per_step->energy.value(), highest.per_step->energy.value()));
  } else {
    cells.insert(cells.end(), 2, kUnknown);
  }
  const std::vector<std::string> chosen = ChosenBy(report, index);
  cells.push_back(chosen.empty() ? "" : fmt::format("<- {}", fmt::join(chosen, ", ")));
  return cells;
}

std::string Rows(const ProfileReport& report) {
  const std::vector<Align> alignment = {Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                                        Align::kRight, Align::kRight, Align::kRight, Align::kLeft};
  std::vector<std::vector<std::string>> rows = {{IsClock(report.knob) ? "clock" : "limit", "power",
                                                 "throughput", "energy/step", "Δ power",
                                                 "Δ time/step", "Δ energy/step", "best for"}};
  for (std::size_t i = 0; i < report.rows.size(); ++i) rows.push_back(Cells(report, i));
  return AlignedRows(alignment, rows);
}

}  // namespace

std::string ToTable(const ProfileReport& report) {
  std::string text = Heading(report);
  if (!report.rows.empty()) {
    text += Rows(report);
    text += fmt::format("  ± is one standard deviation; Δ is against {}\n",
                        ToText(report.rows.front().setting));
    if (report.shared_error > 0) {
      text +=
          fmt::format("  it leaves out the gain of the sensors ({:.1f} %), which all rows share\n",
                      100 * report.shared_error);
    }
  }
  for (const SettingChoice& choice : report.choices)
    if (!choice.row) text += fmt::format("  {}: {}\n", choice.objective, choice.reason);
  for (const std::string& note : NotesOn(report)) text += fmt::format("  {}\n", note);
  return text;
}

// A ProfileReport as JSON (schema "zeus.profile/1") and CSV, see docs/formats.md.

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

Json PerStepJson(const std::optional<SettingRow::PerStep>& step) {
  if (!step) return nullptr;
  return {{"steps", step->steps},
          {"steps_per_second", step->Rate()},
          {"steps_per_second_sigma", step->RateSigma()},
          {"time_per_step_seconds", step->time.count()},
          {"time_per_step_sigma_seconds", step->time_sigma.count()},
          {"energy_per_step_joules", step->energy.value()},
          {"energy_per_step_sigma_joules", step->energy_sigma.value()}};
}

Json RowJson(const ProfileReport& report, std::size_t index) {
  const SettingRow& row = report.rows[index];
  return {{"setting", ToNumber(row.setting)},
          {"slices", row.slices},
          {"time_seconds", row.time.count()},
          {"power_watts", row.power.value()},
          {"power_sigma_watts", row.power_sigma.value()},
          {"per_step", PerStepJson(row.per_step)},
          {"best_for", ChosenBy(report, index)}};
}

Json SliceJson(const ProfileReport& report, const PowerLimitOptimizer::MeasuredSlice& slice) {
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

Json ChoiceJson(const ProfileReport& report, const SettingChoice& choice) {
  Json json = {{"objective", choice.objective}};
  json["setting"] = choice.row ? Json(ToNumber(report.rows[*choice.row].setting)) : Json(nullptr);
  if (!choice.row) json["reason"] = choice.reason;
  return json;
}

Json DevicesJson(const ProfileReport& report) {
  Json devices = Json::array();
  for (const JobKnob::Device& device : report.devices)
    devices.push_back({{"device", device.name}, {"model", device.model}, {"uuid", device.uuid}});
  return devices;
}

}  // namespace

Json ToJson(const ProfileReport& report) {
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

std::string ProfileCsvHeader() {
  return "knob,setting,slices,time_seconds,power_watts,power_sigma_watts,steps_per_second,"
         "steps_per_second_sigma,energy_per_step_joules,energy_per_step_sigma_joules,best_for\n";
}

std::string ToCsv(const ProfileReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const SettingRow& row = report.rows[i];
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

namespace {

using report::Cell;

// A quantity against the setting of the knob.
struct Curve {
  struct Point {
    double x;  // The setting, as a number.
    double y;
    double sigma;
    std::size_t row;  // Index in ProfileReport::rows.
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
std::vector<Curve> CurvesFor(const ProfileReport& report) {
  Curve power{.name = "power", .unit = "W"};
  Curve energy{.name = "energy per step", .unit = "J"};
  Curve time{.name = "time per step", .unit = "s"};
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const SettingRow& row = report.rows[i];
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
    case KnobKind::kPersistence:  // It is no knob to profile.
    case KnobKind::kMemoryClock:
      return "memory clock (MHz)";
  }
  return "";
}

void AddPoint(report::Series& series, const ProfileReport& report, const Curve& curve,
              const Curve::Point& point) {
  series.x.push_back(point.x);
  series.y.push_back(point.y);
  series.low.push_back(point.y - point.sigma);
  series.high.push_back(point.y + point.sigma);
  series.labels.push_back(fmt::format("{}: {} {}", ToText(report.rows[point.row].setting),
                                      WithSigma(point.y, point.sigma, ""), curve.unit));
}

report::Series SeriesFor(const ProfileReport& report, const Curve& curve) {
  report::Series series{.name = curve.name, .role = "zeus"};
  for (const Curve::Point& point : curve.points) AddPoint(series, report, curve, point);
  return series;
}

// "175 W: best for energy, cost (eta 0.5)"; empty where no objective chooses the row.
std::string ChoiceText(const ProfileReport& report, std::size_t row) {
  const std::vector<std::string> chosen = ChosenBy(report, row);
  if (chosen.empty()) return "";
  return fmt::format("{}: best for {}", ToText(report.rows[row].setting), fmt::join(chosen, ", "));
}

report::Panel PanelFor(const ProfileReport& report, const Curve& curve) {
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

std::vector<Cell> TableRow(const ProfileReport& report, std::size_t index) {
  const SettingRow& row = report.rows[index];
  const SettingRow& first = report.rows.front();
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

report::Table SettingsTable(const ProfileReport& report) {
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

report::Table Circumstances(const ProfileReport& report) {
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

report::Figure ToFigure(const ProfileReport& report) {
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

report::Panel ToRelativePanel(const ProfileReport& report) {
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

report::Report ToReport(const ProfileReport& report) {
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

namespace {

constexpr const char* kStandardOutput = "-";

Status Save(const ProfileReport& report, const std::string& file) {
  if (report.profile.points.empty()) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("no profile was saved to {}: it needs the throughput at every setting", file)};
  }
  return WriteWhole(file, ProfileToJson(report.profile));
}

report::Glyphs TerminalGlyphs() {
  const bool unicode = DescribeTerminal(STDERR_FILENO).redraws && LocaleIsUnicode();
  return unicode ? report::Glyphs::kUnicode : report::Glyphs::kAscii;
}

Status WritePage(const ProfileReport& report, const std::string& file) {
  ZEUS_TRY(const std::string page, report::ToHtml(ToReport(report)));
  return WriteWhole(file, page);
}

}  // namespace

Status CheckFiles(const ProfileFiles& files) {
  if (!files.json.empty() && files.json != kStandardOutput)
    ZEUS_RETURN_IF_ERROR(CheckWritable(files.json));
  for (const std::string& file : {files.svg, files.html, files.save})
    if (!file.empty()) ZEUS_RETURN_IF_ERROR(CheckWritable(file));
  if (!files.csv.empty()) ZEUS_RETURN_IF_ERROR(Append(files.csv, "", ""));
  return Ok();
}

Status WriteResults(const ProfileReport& report, const ProfileFiles& files) {
  Status first = Ok();
  const auto keep = [&first](Status status) {
    if (first.ok()) first = std::move(status);
  };
  if (files.json == kStandardOutput) {
    PrintJson(ToJson(report));
    keep(FlushOutput());
  } else if (!files.json.empty()) {
    keep(WriteWhole(files.json, JsonText(ToJson(report), 2) + "\n"));
  }
  if (!files.csv.empty()) keep(Append(files.csv, ProfileCsvHeader(), ToCsv(report)));
  if (!files.svg.empty()) keep(WriteWhole(files.svg, report::ToSvg(ToFigure(report))));
  if (!files.html.empty()) keep(WritePage(report, files.html));
  if (!files.save.empty()) keep(Save(report, files.save));
  return first;
}

void ShowResults(const ProfileReport& report) {
  Show(stderr, ToTable(report));
  std::fputs(report::ToTextPlot(ToRelativePanel(report), TerminalGlyphs()).c_str(), stderr);
}

}  // namespace zeus::cli
