#include "apps/zeus/job/series_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "apps/zeus/html_page.h"
#include "apps/zeus/profile/plot_scale.h"
#include "zeus/base/xml.h"

namespace zeus::cli {
namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 70;
constexpr double kRight = 700;
constexpr double kPanelHeight = 250;
constexpr double kPanelTop = 44;  // Inside a panel: room for its name and the legend.
constexpr double kPanelBottom = 220;
constexpr double kFooter = 34;
constexpr double kLegendGap = 30;      // Around a name in the legend,
constexpr double kLegendLetter = 7.2;  // and for each of its letters.
constexpr double kLegendRow = 16;

// Told apart also by those who see no red or green, on light and on dark ground.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

Axis AxisOver(const Extent& extent, int ticks) {
  if (extent.empty()) return RoundAxis(0, 1, ticks);
  const double spread = extent.high - extent.low;
  return RoundAxis(extent.low, spread > 0 ? extent.high : extent.low + 1, ticks);
}

class PanelText {
 public:
  PanelText(const SeriesPanel& panel, const Axis& x, double top)
      : panel_(panel), x_(x), y_(MakeAxis(panel)), top_(top) {}

  std::string Text() const {
    std::string text = fmt::format("  <text class=\"ink name\" x=\"{}\" y=\"{}\">{}</text>\n",
                                   kLeft, top_ + 18, EscapeXml(panel_.title));
    text += Grid();
    if (panel_.series.size() > 1) text += Legend();
    for (std::size_t i = 0; i < panel_.series.size(); ++i) {
      text += panel_.series[i].shape == Series::Shape::kLine ? LineOf(i) : DotsOf(i);
    }
    return text;
  }

 private:
  static Axis MakeAxis(const SeriesPanel& panel) {
    if (!panel.ticks.empty())
      return {.low = -0.5, .high = static_cast<double>(panel.ticks.size()) - 0.5, .step = 1};
    Extent extent;
    extent.Take(0);  // Costs are compared by their length.
    for (const Series& series : panel.series)
      for (const Series::Point& point : series.points) extent.Take(point.y);
    return AxisOver(extent, 5);
  }

  double X(double x) const { return kLeft + x_.Place(x) * (kRight - kLeft); }
  double Y(double y) const {
    return top_ + kPanelBottom - y_.Place(y) * (kPanelBottom - kPanelTop);
  }
  static const char* Colour(std::size_t series) { return kColours[series % kColours.size()]; }

  std::string HorizontalLine(double y, const std::string& label) const {
    return fmt::format(
        "  <line class=\"grid\" x1=\"{0}\" y1=\"{2:.1f}\" x2=\"{1}\" y2=\"{2:.1f}\"/>\n"
        "  <text class=\"faint end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>\n",
        kLeft, kRight, Y(y), kLeft - 8, Y(y) + 4, EscapeXml(label));
  }

  std::string Grid() const {
    std::string text;
    if (panel_.ticks.empty())
      for (const double tick : y_.Ticks()) text += HorizontalLine(tick, y_.Label(tick));
    for (std::size_t i = 0; i < panel_.ticks.size(); ++i)
      text += HorizontalLine(static_cast<double>(i), panel_.ticks[i]);
    for (const double tick : x_.Ticks()) {
      text += fmt::format("  <text class=\"faint middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
                          X(tick), top_ + kPanelBottom + 18, x_.Label(tick));
    }
    return text;
  }

  // Beside the title, in as many rows as it takes.
  std::string Legend() const {
    constexpr double kBegin = kLeft + 220;
    std::string text;
    double x = kBegin;
    double y = top_ + 12;
    for (std::size_t i = 0; i < panel_.series.size(); ++i) {
      const std::string& name = panel_.series[i].name;
      const double width = kLegendGap + kLegendLetter * static_cast<double>(name.size());
      if (x > kBegin && x + width > kRight + kLegendGap) {
        x = kBegin;
        y += kLegendRow;
      }
      text += fmt::format(
          "  <rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"4\" fill=\"{}\"/>"
          "<text class=\"faint\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          x, y, Colour(i), x + 20, y + 6, EscapeXml(name));
      x += width;
    }
    return text;
  }

  std::string LineOf(std::size_t series) const {
    std::vector<std::string> corners;
    for (const Series::Point& point : panel_.series[series].points)
      corners.push_back(fmt::format("{:.1f},{:.1f}", X(point.x), Y(point.y)));
    return fmt::format(
        "  <polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n",
        Colour(series), fmt::join(corners, " "));
  }

  std::string DotsOf(std::size_t series) const {
    std::string text;
    for (const Series::Point& point : panel_.series[series].points) {
      text += fmt::format(
          "  <circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"4.5\" stroke=\"{2}\" stroke-width=\"2\" "
          "fill=\"{3}\"><title>{4}</title></circle>\n",
          X(point.x), Y(point.y), Colour(series), point.hollow ? "none" : Colour(series),
          EscapeXml(point.label));
    }
    return text;
  }

  const SeriesPanel& panel_;
  const Axis x_;
  const Axis y_;
  const double top_;
};

}  // namespace

std::string ToSvg(const SeriesPlot& plot) {
  Extent extent;
  for (const SeriesPanel& panel : plot.panels)
    for (const Series& series : panel.series)
      for (const Series::Point& point : series.points) extent.Take(point.x);
  const Axis x = AxisOver(extent, 10);
  const double panels_end = kPanelHeight * static_cast<double>(plot.panels.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"plot-title plot-description\">\n"
      "  <title id=\"plot-title\">{2}</title>\n"
      "  <desc id=\"plot-description\">{3}</desc>\n{4}"
      "  <rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
      kWidth, panels_end + kFooter, EscapeXml(plot.title), EscapeXml(plot.description), kSvgStyle);
  for (std::size_t i = 0; i < plot.panels.size(); ++i)
    text += PanelText(plot.panels[i], x, kPanelHeight * static_cast<double>(i)).Text();
  text += fmt::format("  <text class=\"ink middle\" x=\"{}\" y=\"{}\">{}</text>\n",
                      (kLeft + kRight) / 2, panels_end + 16, EscapeXml(plot.x_title));
  return text + "</svg>\n";
}

}  // namespace zeus::cli
