#pragma once

#include <optional>
#include <string>
#include <vector>

// Figures and tables as data: drawn by the page (web/), written as SVG and as CSV (report.h).
namespace zeus::report {

enum class Mark {
  kLine,
  kSteps,  // A line that jumps.
  kPoints,
  kBars,   // Side by side with those of the other series of a panel.
  kArea,   // Between low and high.
  kPath,   // Points joined in their order, later ones darker: a search.
  kRule,   // A thin line that explains: a bound, a constant cost.
  kSpans,  // Bars from x to `until` in the lane y, coloured by `heat`: a timeline.
};

// Lists are as long as `x`, or empty where they are optional.
struct Series {
  std::string name{};
  // Who it is about; the same colour everywhere: default, grid, zeus, knowledge_gradient, oracle,
  // paper, front. Others get colours in their order.
  std::string role{};
  Mark mark = Mark::kLine;
  std::vector<double> x{};  // On an axis of categories: their index, from 0.
  std::vector<double> y{};
  std::vector<double> low{};  // The spread of y, optional.
  std::vector<double> high{};
  std::vector<std::string> labels{};  // What a point says when one points at it, optional.
  // Of spans only.
  std::vector<double> until{};
  std::vector<double> heat{};             // On the panel's scale of colours.
  std::vector<std::string> span_names{};  // Written into them where there is room, optional.
};

struct Axis {
  std::string title{};  // With its unit: "energy (MJ)".
  bool logarithmic = false;
  bool from_zero = false;
  std::vector<std::string> categories{};  // Instead of numbers.
};

// Under the series of a panel whose axes both have categories.
struct HeatMap {
  std::string title{};           // Of the values, with unit.
  std::vector<double> values{};  // A row for each category of y, from the first; NaN: none.
  bool logarithmic = false;
};

// What the colours of spans mean.
struct ColourScale {
  std::string title{};  // With its unit.
  double low = 0;
  double high = 1;
};

struct Panel {
  std::string title{};
  Axis x{};
  Axis y{};
  std::vector<Series> series{};
  std::optional<HeatMap> heat_map{};
  std::optional<ColourScale> colour_scale{};  // Where there are spans.
};

struct Figure {
  std::string id{};  // "figure-6a": names files and anchors.
  std::string title{};
  std::string caption{};  // What it shows, in one sentence.
  std::vector<Panel> panels{};
};

// A number as people read it and as it is; or words.
struct Cell {
  std::string text{};
  std::optional<double> value{};
};

struct Table {
  std::string id{};
  std::string title{};
  std::string caption{};
  std::vector<std::string> columns{};
  std::vector<std::vector<Cell>> rows{};
};

struct Section {
  std::string title{};
  std::string text{};  // A paragraph, optional.
  std::vector<Table> tables{};
  std::vector<Figure> figures{};
};

struct Report {
  std::string title{};
  std::string subtitle{};
  std::vector<std::string> findings{};  // The most important, each a sentence.
  std::vector<std::string> remarks{};   // How it was made; what to doubt.
  std::vector<Section> sections{};
};

}  // namespace zeus::report
