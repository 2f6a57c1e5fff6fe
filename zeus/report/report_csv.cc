// Figures and tables as comma-separated values, see docs/formats.md.
#include <fmt/format.h>

#include <cmath>

#include "zeus/base/csv.h"
#include "zeus/report/report.h"

namespace zeus::report {
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

}  // namespace zeus::report
