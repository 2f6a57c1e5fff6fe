// Plots for terminals: a panel drawn with characters, 64 columns wide and 15 rows high. Curves are
// dotted lines with a mark at each point; the spread of a point is a bar where it is higher than a
// row. Where marks of two curves fall on one place they become a third.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "zeus/base/terminal_text.h"
#include "zeus/report/report.h"
#include "zeus/report/scale.h"

namespace zeus::report {
namespace {

constexpr int kPlotColumns = 64;
constexpr int kPlotRows = 15;
constexpr int kLabelWidth = 6;
constexpr std::size_t kMostCurves = 2;

struct GlyphSet {
  std::array<const char*, kMostCurves> points;
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
  Canvas(const Panel& panel, const GlyphSet& glyphs)
      : x_(panel.x, ComputeExtent(panel, Direction::kX), 0, kPlotColumns - 1, 8),
        y_(panel.y, ComputeExtent(panel, Direction::kY), kPlotRows - 1, 0, 7),
        glyphs_(glyphs),
        cells_(kPlotRows, std::vector<const char*>(kPlotColumns, " ")) {}

  void DrawLine(const Series& series) {
    for (std::size_t i = 1; i < series.x.size(); ++i) {
      const int from = Column(series.x[i - 1]);
      const int to = Column(series.x[i]);
      for (int column = std::min(from, to) + 1; column < std::max(from, to); ++column) {
        const double share = static_cast<double>(column - from) / (to - from);
        At(Row(std::lerp(series.y[i - 1], series.y[i], share)), column) = glyphs_.line;
      }
    }
  }

  void DrawSpread(const Series& series) {
    for (std::size_t i = 0; i < std::min(series.low.size(), series.high.size()); ++i)
      for (int row = Row(series.high[i]); row <= Row(series.low[i]); ++row)
        At(row, Column(series.x[i])) = glyphs_.bar;
  }

  void DrawPoints(const Series& series, std::size_t curve) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const char*& cell = At(Row(series.y[i]), Column(series.x[i]));
      cell = curve == 1 && cell == glyphs_.points[0] ? glyphs_.both : glyphs_.points[curve];
    }
  }

  std::string Text() const {
    std::vector<std::string> labels(kPlotRows);
    for (const Scale::Tick& tick : y_.ticks())
      labels[static_cast<std::size_t>(Row(tick.value))] = tick.label;
    std::string text;
    for (std::size_t row = 0; row < cells_.size(); ++row) {
      const std::string blanks(
          kLabelWidth - std::min<std::size_t>(TextWidth(labels[row]), kLabelWidth), ' ');
      std::string line = fmt::format("  {}{} {}", blanks, labels[row], glyphs_.axis);
      for (const char* cell : cells_[row]) line += cell;
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text + Floor();
  }

 private:
  int Column(double x) const {
    return std::clamp(static_cast<int>(std::lround(x_.Place(x))), 0, kPlotColumns - 1);
  }
  int Row(double y) const {
    return std::clamp(static_cast<int>(std::lround(y_.Place(y))), 0, kPlotRows - 1);
  }
  const char*& At(int row, int column) {
    return cells_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  }

  // The lower edge and the numbers under it.
  std::string Floor() const {
    constexpr int kLeft = kLabelWidth + 4;
    std::string text = fmt::format("  {:>{}} {}", "", kLabelWidth, glyphs_.corner);
    for (int i = 0; i < kPlotColumns; ++i) text += glyphs_.floor;
    std::string numbers(static_cast<std::size_t>(kPlotColumns + 2 * kLeft), ' ');
    for (const Scale::Tick& tick : x_.ticks()) {
      const int middle = Column(tick.value) + kLeft - static_cast<int>(tick.label.size()) / 2;
      numbers.replace(static_cast<std::size_t>(std::max(0, middle)), tick.label.size(), tick.label);
    }
    numbers.erase(numbers.find_last_not_of(' ') + 1);
    return text + "\n" + numbers + "\n";
  }

  Scale x_;
  Scale y_;
  const GlyphSet& glyphs_;
  std::vector<std::vector<const char*>> cells_;
};

}  // namespace

std::string ToTextPlot(const Panel& panel, Glyphs glyphs) {
  const GlyphSet& set = glyphs == Glyphs::kAscii ? kAsciiGlyphs : kUnicodeGlyphs;
  const std::size_t count = std::min(panel.series.size(), kMostCurves);
  if (count == 0 || panel.series.front().x.size() < 2) return "";
  Canvas canvas(panel, set);
  std::string legend;
  for (std::size_t i = 0; i < count; ++i) canvas.DrawLine(panel.series[i]);
  for (std::size_t i = 0; i < count; ++i) canvas.DrawSpread(panel.series[i]);
  for (std::size_t i = 0; i < count; ++i) {
    canvas.DrawPoints(panel.series[i], i);
    legend += fmt::format("{} {}   ", set.points[i], panel.series[i].name);
  }
  if (count > 1) legend += fmt::format("{} both   ", set.both);
  return fmt::format("\n  {}({})\n{}{:>{}}\n", legend, panel.y.title, canvas.Text(), panel.x.title,
                     kPlotColumns + kLabelWidth + 4);
}

}  // namespace zeus::report
