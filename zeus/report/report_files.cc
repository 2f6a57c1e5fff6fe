// Writes a Report as JSON, the data of the page; docs/formats.md describes the fields.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <system_error>

#include "zeus/base/csv.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/spawn.h"
#include "zeus/report/report.h"

namespace zeus::report {
namespace {

const char* MarkName(Mark mark) {
  switch (mark) {
    case Mark::kLine:
      return "line";
    case Mark::kSteps:
      return "steps";
    case Mark::kPoints:
      return "points";
    case Mark::kBars:
      return "bars";
    case Mark::kArea:
      return "area";
    case Mark::kPath:
      return "path";
    case Mark::kRule:
      return "rule";
    case Mark::kSpans:
      return "spans";
  }
  return "line";
}

Json Numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(FiniteOrNull(value));
  return list;
}

template <class T>
Json List(const std::vector<T>& items, Json (*json_of)(const T&)) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(json_of(item));
  return list;
}

Json AxisJson(const Axis& axis) {
  Json json = {
      {"title", axis.title}, {"logarithmic", axis.logarithmic}, {"from_zero", axis.from_zero}};
  if (!axis.categories.empty()) json["categories"] = axis.categories;
  return json;
}

Json SeriesJson(const Series& series) {
  Json json = {{"name", series.name},
               {"role", series.role},
               {"mark", MarkName(series.mark)},
               {"x", Numbers(series.x)},
               {"y", Numbers(series.y)}};
  if (!series.low.empty()) json["low"] = Numbers(series.low);
  if (!series.high.empty()) json["high"] = Numbers(series.high);
  if (!series.labels.empty()) json["labels"] = series.labels;
  if (!series.until.empty()) json["until"] = Numbers(series.until);
  if (!series.heat.empty()) json["heat"] = Numbers(series.heat);
  if (!series.span_names.empty()) json["span_names"] = series.span_names;
  return json;
}

Json PanelJson(const Panel& panel) {
  Json json = {{"title", panel.title},
               {"x", AxisJson(panel.x)},
               {"y", AxisJson(panel.y)},
               {"series", List(panel.series, SeriesJson)}};
  if (panel.heat_map) {
    json["heat_map"] = {{"title", panel.heat_map->title},
                        {"logarithmic", panel.heat_map->logarithmic},
                        {"values", Numbers(panel.heat_map->values)}};
  }
  if (panel.colour_scale) {
    json["colour_scale"] = {{"title", panel.colour_scale->title},
                            {"low", FiniteOrNull(panel.colour_scale->low)},
                            {"high", FiniteOrNull(panel.colour_scale->high)}};
  }
  return json;
}

Json FigureJson(const Figure& figure) {
  return {{"id", figure.id},
          {"title", figure.title},
          {"caption", figure.caption},
          {"panels", List(figure.panels, PanelJson)}};
}

Json CellJson(const Cell& cell) {
  if (!cell.value) return cell.text;
  return {{"text", cell.text}, {"value", FiniteOrNull(*cell.value)}};
}

Json TableJson(const Table& table) {
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows) rows.push_back(List(row, CellJson));
  return {{"id", table.id},
          {"title", table.title},
          {"caption", table.caption},
          {"columns", table.columns},
          {"rows", std::move(rows)}};
}

Json SectionJson(const Section& section) {
  return {{"title", section.title},
          {"text", section.text},
          {"tables", List(section.tables, TableJson)},
          {"figures", List(section.figures, FigureJson)}};
}

}  // namespace

Json ToJson(const Report& report) {
  return {{"format", "zeus-report"},
          {"version", 1},
          {"title", report.title},
          {"subtitle", report.subtitle},
          {"findings", report.findings},
          {"remarks", report.remarks},
          {"sections", List(report.sections, SectionJson)}};
}

// Figures and tables as comma-separated values, see docs/formats.md.

namespace {

// Returns the shortest text that reads back as the same number, or "" when it is not finite.
std::string FiniteOrEmpty(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string NumberAt(const std::vector<double>& values, std::size_t index) {
  return index < values.size() ? FiniteOrEmpty(values[index]) : "";
}

// The name of a category where the axis has them.
std::string Place(const Axis& axis, const std::vector<double>& values, std::size_t index) {
  if (axis.categories.empty() || index >= values.size()) return NumberAt(values, index);
  const double value = values[index];
  const bool named = value >= 0 && value < static_cast<double>(axis.categories.size()) &&
                     value == std::floor(value);
  return named ? axis.categories[static_cast<std::size_t>(value)] : FiniteOrEmpty(value);
}

std::string Line(const std::vector<std::string>& fields) { return CsvRow(fields) + "\n"; }

bool HasSpans(const Figure& figure) {
  for (const Panel& panel : figure.panels)
    for (const Series& series : panel.series)
      if (series.mark == Mark::kSpans) return true;
  return false;
}

std::string HeatMapRows(const Panel& panel) {
  std::string text;
  const std::size_t width = panel.x.categories.size();
  for (std::size_t i = 0; i < panel.heat_map->values.size() && width > 0; ++i) {
    const std::size_t row = i / width;
    if (row >= panel.y.categories.size()) break;
    text += Line({panel.title, panel.heat_map->title, panel.x.categories[i % width],
                  panel.y.categories[row], "", "", FiniteOrEmpty(panel.heat_map->values[i])});
  }
  return text;
}

}  // namespace

std::string ToCsv(const Figure& figure) {
  std::vector<std::string> header{"panel", "series", "x", "y", "low", "high", "label"};
  const bool spans = HasSpans(figure);
  if (spans) header.insert(header.end(), {"until", "heat"});
  std::string text = Line(header);
  for (const Panel& panel : figure.panels) {
    if (panel.heat_map) text += HeatMapRows(panel);
    for (const Series& series : panel.series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        std::vector<std::string> row{panel.title,
                                     series.name,
                                     Place(panel.x, series.x, i),
                                     Place(panel.y, series.y, i),
                                     NumberAt(series.low, i),
                                     NumberAt(series.high, i),
                                     i < series.labels.size() ? series.labels[i] : ""};
        if (spans) {
          row.push_back(NumberAt(series.until, i));
          row.push_back(NumberAt(series.heat, i));
        }
        text += Line(row);
      }
    }
  }
  return text;
}

std::string ToCsv(const Table& table) {
  std::string text = Line(table.columns);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> fields;
    for (const Cell& cell : row)
      fields.push_back(cell.value ? FiniteOrEmpty(*cell.value) : cell.text);
    text += Line(fields);
  }
  return text;
}

// Writes figures and tables as files.

namespace {

namespace fs = std::filesystem;

// Runs rsvg-convert. Returns "" when it wrote the picture, else the reason why it did not.
std::string ConvertToPng(const fs::path& svg, const fs::path& png) {
  const auto converter =
      Spawn({.command = {"rsvg-convert", "--zoom=2", "--output=" + png.string(), svg.string()}});
  if (!converter.ok() && converter.error().code == ErrorCode::kNotFound)
    return "no PNG files: rsvg-convert is not installed (Debian: librsvg2-bin)";
  if (!converter.ok()) return "no PNG files: " + converter.error().message;
  const int status = WaitForEnd(converter.value());
  const bool written = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return written ? "" : "no PNG files: rsvg-convert failed on " + svg.filename().string();
}

class Folder {
 public:
  explicit Folder(fs::path folder) : folder_(std::move(folder)) {}

  Status Write(const Figure& figure) {
    const std::string name = NameFor(figure.id);
    ZEUS_RETURN_IF_ERROR(ReplaceFile(folder_ / (name + ".csv"), ToCsv(figure)));
    const fs::path svg = folder_ / (name + ".svg");
    ZEUS_RETURN_IF_ERROR(ReplaceFile(svg, ToSvg(figure)));
    // Every picture would fail for the same reason.
    if (!left_out_.empty()) return Ok();
    // No other process uses this name.
    const fs::path part = folder_ / ("." + name + "." + std::to_string(::getpid()) + ".png.part");
    left_out_ = ConvertToPng(svg, part);
    std::error_code failed;
    if (left_out_.empty()) {
      fs::rename(part, folder_ / (name + ".png"), failed);
      if (failed) return FileError(folder_ / (name + ".png"), failed.value());
    } else {
      fs::remove(part, failed);
    }
    return Ok();
  }

  Status Write(const Table& table) {
    return ReplaceFile(folder_ / (NameFor(table.id) + ".csv"), ToCsv(table));
  }

  const std::string& left_out() const { return left_out_; }

 private:
  // A second figure of the same id gets another name.
  std::string NameFor(const std::string& id) {
    std::string name = FileNamePart(id);
    const int seen = ++names_[name];
    return seen == 1 ? name : name + "-" + std::to_string(seen);
  }

  fs::path folder_;
  std::map<std::string, int> names_;
  std::string left_out_;
};

}  // namespace

Result<std::string> WriteFiles(const Report& report, const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return FileError(folder, failed.value());
  Folder files(folder);
  for (const Section& section : report.sections) {
    for (const Table& table : section.tables) ZEUS_RETURN_IF_ERROR(files.Write(table));
    for (const Figure& figure : section.figures) ZEUS_RETURN_IF_ERROR(files.Write(figure));
  }
  return files.left_out();
}

}  // namespace zeus::report
