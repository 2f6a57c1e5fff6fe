// Writes a Report as JSON, the data of the page; docs/formats.md describes the fields.
#include "zeus/base/json.h"
#include "zeus/report/report.h"

namespace zeus::report {
namespace {

const char* NameOf(Mark mark) {
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
               {"mark", NameOf(series.mark)},
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

}  // namespace zeus::report
