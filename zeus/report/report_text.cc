// Tables for terminals.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "zeus/base/terminal_text.h"
#include "zeus/report/report.h"
#include "zeus/report/scale.h"

namespace zeus::report {
namespace {

constexpr std::size_t kNarrowest = 14;  // A column of words is not made narrower than this.

// Text of at most `width` characters a line, broken between words; longer words stay whole.
std::vector<std::string> Wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!lines.back().empty() && TextWidth(lines.back()) + 1 + TextWidth(word) > width)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string Paragraph(const std::string& text, int width, const std::string& indent) {
  std::string result;
  const auto room = static_cast<std::size_t>(std::max(width, 20)) - indent.size();
  bool first = true;
  for (const std::string& line : Wrapped(text, room)) {
    result += (first ? indent : std::string(indent.size(), ' ')) + line + "\n";
    first = false;
  }
  return result;
}

std::vector<Align> ColumnAlignments(const Table& table) {
  std::vector<Align> alignment(table.columns.size(), Align::kLeft);
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    bool numbers = false;
    bool words = false;
    for (const auto& row : table.rows) {
      if (column >= row.size() || row[column].text.empty()) continue;
      (row[column].value ? numbers : words) = true;
    }
    if (numbers && !words) alignment[column] = Align::kRight;
  }
  return alignment;
}

std::vector<std::vector<std::string>> CellTexts(const Table& table) {
  std::vector<std::vector<std::string>> texts = {table.columns};
  for (const auto& row : table.rows) {
    auto& cells = texts.emplace_back(table.columns.size());
    for (std::size_t i = 0; i < std::min(row.size(), cells.size()); ++i) cells[i] = row[i].text;
  }
  return texts;
}

// Returns the widths of the columns so that the table fits: columns of words shrink, widest first.
std::vector<std::size_t> ColumnWidths(const std::vector<std::vector<std::string>>& rows,
                                      const std::vector<Align>& alignment, std::size_t room) {
  std::vector<std::size_t> widths(alignment.size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], TextWidth(row[i]));
  std::size_t total = 2 * (widths.empty() ? 0 : widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  while (total > room) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (alignment[i] == Align::kRight || widths[i] <= kNarrowest) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

// Cells that are too wide continue on further lines of their row.
std::vector<std::vector<std::string>> Folded(const std::vector<std::vector<std::string>>& rows,
                                             const std::vector<std::size_t>& widths) {
  std::vector<std::vector<std::string>> folded;
  for (const auto& row : rows) {
    const std::size_t first = folded.size();
    folded.emplace_back(widths.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto lines = Wrapped(row[i], widths[i]);
      while (folded.size() < first + lines.size()) folded.emplace_back(widths.size());
      for (std::size_t k = 0; k < lines.size(); ++k) folded[first + k][i] = lines[k];
    }
  }
  return folded;
}

}  // namespace

std::string ToText(const Table& table, int width) {
  std::string text = table.title.empty() ? "" : Paragraph(table.title, width, "");
  const auto alignment = ColumnAlignments(table);
  const auto rows = CellTexts(table);
  const auto widths = ColumnWidths(rows, alignment, static_cast<std::size_t>(std::max(width, 0)));
  text += AlignedRows(alignment, Folded(rows, widths));
  if (!table.caption.empty()) text += Paragraph(table.caption, width, "");
  return text;
}

std::string ToText(const Report& report, int width) {
  std::string text = Paragraph(report.title, width, "");
  if (!report.subtitle.empty()) text += Paragraph(report.subtitle, width, "");
  for (const Section& section : report.sections) {
    if (section.tables.empty()) continue;
    if (!section.title.empty()) text += "\n" + Paragraph(section.title, width, "");
    for (const Table& table : section.tables) text += "\n" + ToText(table, width);
  }
  if (!report.findings.empty()) text += "\n";
  for (const std::string& finding : report.findings) text += Paragraph(finding, width, "- ");
  if (!report.remarks.empty()) text += "\n";
  for (const std::string& remark : report.remarks) text += Paragraph(remark, width, "note: ");
  return text;
}

// Plots for terminals: a panel drawn with characters, 64 columns wide and 15 rows high. Curves are
// dotted lines with a mark at each point; the spread of a point is a bar where it is higher than a
// row. Where marks of two curves fall on one place they become a third.

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
