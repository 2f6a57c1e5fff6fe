#include "apps/zeus/profile/svg_plot.h"

#include <fmt/format.h>

#include <vector>

#include "apps/zeus/html_page.h"
#include "apps/zeus/profile/plot_scale.h"
#include "apps/zeus/profile/uncertain_text.h"
#include "zeus/base/xml.h"

namespace zeus::cli {
namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 70;
constexpr double kRight = 700;
constexpr double kPanelHeight = 230;
constexpr double kPanelTop = 34;  // Inside a panel: room for its name.
constexpr double kPanelBottom = 200;
constexpr double kFooter = 34;
constexpr double kLegendLine = 20;

class Panel {
 public:
  Panel(const SweepReport& report, const Curve& curve, const Axis& x, double top)
      : report_(report), curve_(curve), x_(x), y_(AxisOfValues({curve}, 5)), top_(top) {}

  std::string Text() const {
    std::string text =
        fmt::format("  <text class=\"ink name\" x=\"{}\" y=\"{}\">{} ({})</text>\n", kLeft,
                    top_ + 18, EscapeXml(curve_.name), EscapeXml(curve_.unit));
    text += Grid();
    if (curve_.points.size() > 1) {
      std::vector<std::string> corners;
      for (const Curve::Point& point : curve_.points)
        corners.push_back(fmt::format("{:.1f},{:.1f}", X(point.x), Y(point.y)));
      text += fmt::format("  <polyline class=\"curve\" points=\"{}\"/>\n", fmt::join(corners, " "));
    }
    for (const Curve::Point& point : curve_.points) text += Mark(point);
    return text;
  }

 private:
  double X(double x) const { return kLeft + x_.Place(x) * (kRight - kLeft); }
  double Y(double y) const {
    return top_ + kPanelBottom - y_.Place(y) * (kPanelBottom - kPanelTop);
  }

  std::string Grid() const {
    std::string text;
    for (const double tick : y_.Ticks()) {
      text += fmt::format(
          "  <line class=\"grid\" x1=\"{0}\" y1=\"{2:.1f}\" x2=\"{1}\" y2=\"{2:.1f}\"/>\n"
          "  <text class=\"faint end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>\n",
          kLeft, kRight, Y(tick), kLeft - 8, Y(tick) + 4, y_.Label(tick));
    }
    for (const double tick : x_.Ticks()) {
      text += fmt::format(
          "  <line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n"
          "  <text class=\"faint middle\" x=\"{0:.1f}\" y=\"{3}\">{4}</text>\n",
          X(tick), top_ + kPanelTop, top_ + kPanelBottom, top_ + kPanelBottom + 18, x_.Label(tick));
    }
    return text;
  }

  std::string Mark(const Curve::Point& point) const {
    const double x = X(point.x);
    std::string text = fmt::format(
        "  <g><title>{}: {}</title>\n"
        "    <path class=\"bar\" d=\"M{:.1f} {:.1f}V{:.1f}M{:.1f} {:.1f}h8M{:.1f} {:.1f}h8\"/>\n",
        ToText(report_.rows[point.row].setting),
        EscapeXml(WithSigma(point.y, point.sigma, curve_.unit.c_str())), x,
        Y(point.y - point.sigma), Y(point.y + point.sigma), x - 4, Y(point.y - point.sigma), x - 4,
        Y(point.y + point.sigma));
    const std::string letter = LetterOf(report_, point.row);
    if (letter.empty()) {
      text += fmt::format("    <circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>", x,
                          Y(point.y));
    } else {
      // Above the bar, or below it where that would leave the panel.
      const double above = Y(point.y + point.sigma) - 12;
      const double label = above > top_ + kPanelTop + 4 ? above : Y(point.y - point.sigma) + 22;
      text += fmt::format(
          "    <circle class=\"chosen\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"6\"/>"
          "<text class=\"letter middle\" x=\"{0:.1f}\" y=\"{2:.1f}\">{3}</text>",
          x, Y(point.y), label, letter);
    }
    return text + "</g>\n";
  }

  const SweepReport& report_;
  const Curve& curve_;
  Axis x_;
  Axis y_;
  double top_;
};

std::vector<std::string> Legend(const SweepReport& report) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const std::string letter = LetterOf(report, i);
    if (letter.empty()) continue;
    lines.push_back(fmt::format("{}  {}: best for {}", letter, ToText(report.rows[i].setting),
                                fmt::join(ChosenBy(report, i), ", ")));
  }
  return lines;
}

std::string Description(const SweepReport& report, const std::vector<Curve>& curves) {
  std::vector<std::string> names;
  for (const Curve& curve : curves) names.push_back(curve.name);
  std::string text =
      fmt::format("{} against the {}, from {} to {}.", fmt::join(names, " and "), report.knob_name,
                  ToText(report.rows.front().setting), ToText(report.rows.back().setting));
  for (const std::string& line : Legend(report)) text += " " + line + ".";
  return text;
}

}  // namespace

std::string LetterOf(const SweepReport& report, std::size_t row) {
  if (ChosenBy(report, row).empty()) return "";
  char letter = 'A';
  for (std::size_t i = 0; i < row; ++i)
    if (!ChosenBy(report, i).empty()) ++letter;
  return {letter};
}

std::string ToSvg(const SweepReport& report) {
  const std::vector<Curve> curves = CurvesOf(report);
  const std::vector<std::string> legend = Legend(report);
  const double panels_end = kPanelHeight * static_cast<double>(curves.size());
  const double height = panels_end + kFooter + kLegendLine * static_cast<double>(legend.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"plot-title plot-description\">\n"
      "  <title id=\"plot-title\">Power sweep of {2}</title>\n"
      "  <desc id=\"plot-description\">{3}</desc>\n{4}"
      "  <rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
      kWidth, height, EscapeXml(fmt::format("{}", fmt::join(report.command, " "))),
      curves.empty() ? "Nothing was measured." : EscapeXml(Description(report, curves)), kSvgStyle);
  if (curves.empty()) {
    return text + fmt::format(
                      "  <text class=\"ink\" x=\"{}\" y=\"22\">nothing was measured</text>"
                      "\n</svg>\n",
                      kLeft);
  }
  const Axis x = AxisOfSettings(curves, 10);
  for (std::size_t i = 0; i < curves.size(); ++i)
    text += Panel(report, curves[i], x, kPanelHeight * static_cast<double>(i)).Text();
  double y = panels_end + 14;
  text += fmt::format("  <text class=\"ink middle\" x=\"{}\" y=\"{}\">{}</text>\n",
                      (kLeft + kRight) / 2, y, SettingTitle(report.knob));
  for (const std::string& line : legend) {
    y += kLegendLine;
    text += fmt::format("  <text class=\"ink\" x=\"{}\" y=\"{}\">{}</text>\n", kLeft, y,
                        EscapeXml(line));
  }
  return text + "</svg>\n";
}

}  // namespace zeus::cli
