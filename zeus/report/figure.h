#pragma once

#include <optional>
#include <string>
#include <vector>

// Figures and tables as data. The page (web/) and the functions of report.h draw and write them.
namespace zeus::report {

enum class Mark {
  kLine,
  kSteps,  // A line that stays level and jumps.
  kPoints,
  kBars,   // Bars; those of several series stand side by side.
  kArea,   // The area between low and high.
  kPath,   // Points joined in their order, later ones darker: a search.
  kRule,   // A thin line that explains: a bound, a constant cost.
  kSpans,  // Bars from x to `until` in the lane y, coloured by `heat`: a timeline.
};

// One curve, set of points or set of bars. Lists are as long as `x`; optional ones may be empty.
struct Series {
  std::string name{};
  // Chooses the colour, the same in every figure: default, grid, zeus, knowledge_gradient, oracle,
  // paper or front. Series of other roles get colours in the order in which they appear.
  std::string role{};
  Mark mark = Mark::kLine;
  std::vector<double> x{};  // On an axis of categories: the index of the category.
  std::vector<double> y{};
  std::vector<double> low{};  // The spread of y, optional.
  std::vector<double> high{};
  std::vector<std::string> labels{};  // Tooltips, optional.
  // The following are for Mark::kSpans only.
  std::vector<double> until{};
  std::vector<double> heat{};             // Value on the colour scale of the panel.
  std::vector<std::string> span_names{};  // Written into the spans where they fit, optional.
};

struct Axis {
  std::string title{};  // Includes the unit: "energy (MJ)".
  bool logarithmic = false;
  bool from_zero = false;
  std::vector<std::string> categories{};  // When given, the axis has these instead of numbers.
};

// Coloured cells under the series of a panel whose axes both have categories.
struct HeatMap {
  std::string title{};           // Name of the values, with unit.
  std::vector<double> values{};  // Row by row, one for each category of y; NaN: no value.
  bool logarithmic = false;
};

// The meaning of the colours of spans.
struct ColourScale {
  std::string title{};  // Includes the unit.
  double low = 0;
  double high = 1;
};

struct Panel {
  std::string title{};
  Axis x{};
  Axis y{};
  std::vector<Series> series{};
  std::optional<HeatMap> heat_map{};
  std::optional<ColourScale> colour_scale{};  // Needed where there are spans.
};

struct Figure {
  std::string id{};  // Name of files and anchors: "figure-6a".
  std::string title{};
  std::string caption{};  // One sentence about what the figure shows.
  std::vector<Panel> panels{};
};

// A number, as people read it and as it is, or words alone.
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
  std::string text{};  // An introductory paragraph, optional.
  std::vector<Table> tables{};
  std::vector<Figure> figures{};
};

struct Report {
  std::string title{};
  std::string subtitle{};
  std::vector<std::string> findings{};  // The main results, each a sentence.
  std::vector<std::string> remarks{};   // How the report was made, and its limits.
  std::vector<Section> sections{};
};

}  // namespace zeus::report
