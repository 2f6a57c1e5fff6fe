// Tables for terminals.
#include <fmt/format.h>

#include <algorithm>

#include "zeus/base/terminal_text.h"
#include "zeus/report/report.h"

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

std::vector<Align> AlignmentOf(const Table& table) {
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

std::vector<std::vector<std::string>> TextsOf(const Table& table) {
  std::vector<std::vector<std::string>> texts = {table.columns};
  for (const auto& row : table.rows) {
    auto& cells = texts.emplace_back(table.columns.size());
    for (std::size_t i = 0; i < std::min(row.size(), cells.size()); ++i) cells[i] = row[i].text;
  }
  return texts;
}

// Returns the widths of the columns so that the table fits: columns of words shrink, widest first.
std::vector<std::size_t> WidthsOf(const std::vector<std::vector<std::string>>& rows,
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
  const auto alignment = AlignmentOf(table);
  const auto rows = TextsOf(table);
  const auto widths = WidthsOf(rows, alignment, static_cast<std::size_t>(std::max(width, 0)));
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

}  // namespace zeus::report
