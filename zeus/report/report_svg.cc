// Figures as drawings that stand alone: the panels in a grid, one legend for all of them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "zeus/base/file.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/report/report.h"
#include "zeus/report/svg_panel.h"

namespace zeus::report {
namespace {

constexpr double kMargin = 14;
constexpr double kTitle = 34;
constexpr double kLegendRow = 20;
constexpr double kKeyLetter = 6.6;
constexpr double kKey = 24;  // The sample of a mark before a name.

struct Grid {
  std::size_t columns;
  double panel_width;
  double panel_height;
};

// Timelines are stacked, so that simultaneous events are above each other.
std::optional<Grid> TimelineGrid(const Figure& figure) {
  std::size_t lanes = 0;
  for (const Panel& panel : figure.panels)
    for (const Series& series : panel.series)
      if (series.mark == Mark::kSpans) lanes = std::max(lanes, panel.y.categories.size());
  if (lanes == 0) return std::nullopt;
  const double height = std::clamp(static_cast<double>(lanes) * 24, 80.0, 720.0);
  return Grid{1, 1040, height + 84};
}

Grid ArrangePanels(const Figure& figure) {
  if (const auto timelines = TimelineGrid(figure)) return *timelines;
  switch (figure.panels.size()) {
    case 0:
    case 1:
      return {1, 720, 400};
    case 2:
    case 4:
      return {2, 450, 330};
    default:
      return {3, 340, 280};
  }
}

// One of each name, in the order of first appearance.
std::vector<const Series*> SeriesInLegend(const Figure& figure) {
  std::vector<const Series*> legend;
  std::set<std::string> names;
  for (const Panel& panel : figure.panels)
    for (const Series& series : panel.series)
      if (!series.name.empty() && names.insert(series.name).second) legend.push_back(&series);
  return legend;
}

std::string Key(const Series& series, double x, double y) {
  switch (series.mark) {
    case Mark::kPoints:
      return fmt::format("<circle class=\"fill\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", x + 9, y);
    case Mark::kBars:
      return fmt::format(
          "<rect class=\"fill\" x=\"{}\" y=\"{}\" width=\"12\" height=\"10\" rx=\"1\"/>", x + 3,
          y - 5);
    case Mark::kArea:
      return fmt::format("<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"18\" height=\"10\"/>", x,
                         y - 5);
    case Mark::kSpans:
      return fmt::format(
          "<rect class=\"outlined\" fill=\"{}\" x=\"{}\" y=\"{}\" width=\"18\" height=\"10\"/>",
          SpanColour(0.5), x, y - 5);
    case Mark::kRule:
      return fmt::format("<path class=\"thin\" d=\"M{} {}h18\"/>", x, y);
    default:
      return fmt::format("<path class=\"stroke\" d=\"M{} {}h18\"/>", x, y);
  }
}

struct Drawn {
  std::string text{};
  double height = 0;
};

Drawn Legend(const Figure& figure, const Palette& palette, double width, double top) {
  const auto legend = SeriesInLegend(figure);
  // A single series needs no legend: the title names it.
  if (legend.size() < 2) return {};
  Drawn drawn{.text = "", .height = kLegendRow};
  double x = kMargin + 6;
  for (const Series* series : legend) {
    const double needed = kKey + kKeyLetter * static_cast<double>(TextWidth(series->name)) + 18;
    if (x > kMargin + 6 && x + needed > width - kMargin) {
      x = kMargin + 6;
      drawn.height += kLegendRow;
    }
    const double y = top + drawn.height - kLegendRow / 2;
    drawn.text += fmt::format(
        "<g class=\"{}\">{}</g><text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        palette.CssClass(*series), Key(*series, x, y), x + kKey, y + 4, EscapeXml(series->name));
    x += needed;
  }
  return drawn;
}

}  // namespace

std::string ToSvg(const Figure& figure) {
  const Grid grid = ArrangePanels(figure);
  const Palette palette(figure);
  const double width = 2 * kMargin + grid.panel_width * static_cast<double>(grid.columns);
  const double legend_top = figure.title.empty() ? 8 : kTitle;
  const Drawn legend = Legend(figure, palette, width, legend_top);
  const double panels_top = legend_top + legend.height + 6;
  const std::size_t rows =
      (std::max<std::size_t>(figure.panels.size(), 1) + grid.columns - 1) / grid.columns;
  const double height = panels_top + grid.panel_height * static_cast<double>(rows) + kMargin;
  const std::string id = FileNamePart(figure.id);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"{2}-title {2}-description\">\n"
      "  <title id=\"{2}-title\">{3}</title>\n  <desc id=\"{2}-description\">{4}</desc>\n{5}"
      "<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
      width, height, id, EscapeXml(figure.title), EscapeXml(figure.caption), kSvgStyle);
  if (!figure.title.empty()) {
    text += fmt::format("<text class=\"ink title\" x=\"{}\" y=\"24\">{}</text>\n", kMargin + 6,
                        EscapeXml(figure.title));
  }
  text += legend.text;
  if (figure.panels.empty())
    text += fmt::format("<text class=\"faint\" x=\"{}\" y=\"{}\">no data</text>\n", kMargin + 6,
                        panels_top + 20);
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const std::size_t row = i / grid.columns;
    const std::size_t column = i % grid.columns;
    const PanelBox box{.left = kMargin + grid.panel_width * static_cast<double>(column),
                       .top = panels_top + grid.panel_height * static_cast<double>(row),
                       .width = grid.panel_width,
                       .height = grid.panel_height};
    text += SvgPanel(figure.panels[i], palette, box, fmt::format("{}-clip-{}", id, i));
  }
  return text + "</svg>\n";
}

}  // namespace zeus::report
