#include "apps/zeus/profile/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "apps/zeus/profile/plot_scale.h"

namespace zeus::cli {
namespace {

constexpr int kColumns = 64;
constexpr int kHeight = 15;

struct GlyphSet {
  std::array<const char*, 2> points;  // Of the first and the second curve.
  const char* both;
  const char* line;
  const char* bar;
  const char* axis;
  const char* floor;
  const char* corner;
};
constexpr GlyphSet kAsciiGlyphs = {{"*", "o"}, "@", ".", "|", "|", "-", "+"};
constexpr GlyphSet kUnicodeGlyphs = {{"●", "○"}, "◉", "·", "╎", "│", "─", "└"};

class Canvas {
 public:
  Canvas(const Axis& x, const Axis& y, const GlyphSet& glyphs)
      : x_(x), y_(y), glyphs_(glyphs), cells_(kHeight, std::vector<const char*>(kColumns, " ")) {}

  void Line(const Curve& curve) {
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      const Curve::Point& from = curve.points[i - 1];
      const Curve::Point& to = curve.points[i];
      const int first = std::min(Column(from.x), Column(to.x));
      const int last = std::max(Column(from.x), Column(to.x));
      for (int column = first + 1; column < last; ++column) {
        const double x = x_.low + (x_.high - x_.low) * column / (kColumns - 1);
        const double y = from.y + (to.y - from.y) * (x - from.x) / (to.x - from.x);
        At(Row(y), column) = glyphs_.line;
      }
    }
  }

  void Bars(const Curve& curve) {
    for (const Curve::Point& point : curve.points)
      for (int row = Row(point.y + point.sigma); row <= Row(point.y - point.sigma); ++row)
        At(row, Column(point.x)) = glyphs_.bar;
  }

  void Points(const Curve& curve, std::size_t number) {
    for (const Curve::Point& point : curve.points) {
      const char*& cell = At(Row(point.y), Column(point.x));
      cell = number == 1 && cell == glyphs_.points[0] ? glyphs_.both : glyphs_.points[number];
    }
  }

  std::string Text() const {
    std::vector<std::string> labels(kHeight);
    for (const double tick : y_.Ticks()) labels[Position(tick)] = y_.Label(tick);
    std::string text;
    for (std::size_t row = 0; row < cells_.size(); ++row) {
      std::string line = fmt::format("  {:>6} {}", labels[row], glyphs_.axis);
      for (const char* cell : cells_[row]) line += cell;
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text + Floor();
  }

 private:
  int Column(double x) const {
    return std::clamp(static_cast<int>(std::lround(x_.Place(x) * (kColumns - 1))), 0, kColumns - 1);
  }
  int Row(double y) const {
    const auto from_below = static_cast<int>(std::lround(y_.Place(y) * (kHeight - 1)));
    return std::clamp(kHeight - 1 - from_below, 0, kHeight - 1);
  }
  std::size_t Position(double y) const { return static_cast<std::size_t>(Row(y)); }
  const char*& At(int row, int column) {
    return cells_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  }

  // The lower edge and the numbers under it.
  std::string Floor() const {
    std::string text = fmt::format("  {:>6} {}", "", glyphs_.corner);
    for (int i = 0; i < kColumns; ++i) text += glyphs_.floor;
    std::string numbers(static_cast<std::size_t>(kColumns) + 20, ' ');
    for (const double tick : x_.Ticks()) {
      const std::string label = x_.Label(tick);
      const auto begin = static_cast<std::size_t>(
          std::max(0, Column(tick) + 10 - static_cast<int>(label.size()) / 2));
      numbers.replace(begin, label.size(), label);
    }
    numbers.erase(numbers.find_last_not_of(' ') + 1);
    return text + "\n" + numbers + "\n";
  }

  Axis x_;
  Axis y_;
  const GlyphSet& glyphs_;
  std::vector<std::vector<const char*>> cells_;
};

}  // namespace

std::string ToTextPlot(const SweepReport& report, Glyphs glyphs) {
  const GlyphSet& set = glyphs == Glyphs::kAscii ? kAsciiGlyphs : kUnicodeGlyphs;
  const std::vector<Curve> curves =
      KnowsSteps(report) ? RelativeCurvesOf(report) : CurvesOf(report);
  if (curves.empty() || curves.front().points.size() < 2) return "";
  Canvas canvas(AxisOfSettings(curves, 8), AxisOfValues(curves, 7), set);
  for (const Curve& curve : curves) canvas.Line(curve);
  for (const Curve& curve : curves) canvas.Bars(curve);
  for (std::size_t i = 0; i < curves.size(); ++i) canvas.Points(curves[i], i);

  std::vector<std::string> legend;
  for (std::size_t i = 0; i < curves.size(); ++i)
    legend.push_back(fmt::format("{} {}", set.points[i], curves[i].name));
  std::string title = fmt::format("\n  {}", fmt::join(legend, "   "));
  if (KnowsSteps(report)) {
    title += fmt::format("   {} both   (% of those at {})", set.both,
                         ToText(report.rows[curves.front().points.front().row].setting));
  } else {
    title += fmt::format(" ({})", curves.front().unit);
  }
  return title + "\n" + canvas.Text() +
         fmt::format("{:>{}}\n", SettingTitle(report.knob), kColumns + 10);
}

}  // namespace zeus::cli
