#include "zeus/base/text_table.h"

#include <algorithm>

#include "zeus/base/terminal_text.h"

namespace zeus {

std::size_t TextWidth(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string AlignedRows(const std::vector<Align>& alignment,
                        const std::vector<std::vector<std::string>>& given) {
  // Cells hold names that other people chose.
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows)
    for (std::string& cell : row) cell = OneLineForTerminal(cell);
  std::vector<std::size_t> widths(alignment.size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], TextWidth(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - TextWidth(row[i]), ' ');
      if (i > 0) line += "  ";
      line += alignment[i] == Align::kRight ? blanks + row[i] : row[i] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace zeus
