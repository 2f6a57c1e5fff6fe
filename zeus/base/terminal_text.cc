#include "zeus/base/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace zeus {
namespace {

// A character and the bytes it takes; a byte that begins none stands for itself, as invalid.
struct Character {
  std::uint32_t code = 0;
  std::size_t length = 1;
  bool valid = true;
};

Character FirstCharacter(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80U) return {.code = lead};
  const std::size_t length = lead >= 0xf0U ? 4 : lead >= 0xe0U ? 3 : 2;
  const Character invalid{.code = lead, .valid = false};
  if (lead < 0xc2U || lead > 0xf4U || text.size() < length) return invalid;
  std::uint32_t code = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return invalid;
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kSmallest[] = {0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800U && code <= 0xdfffU;
  if (code < kSmallest[length - 2] || code > 0x10ffffU || surrogate) return invalid;
  return {.code = code, .length = length};
}

// Marks, embeddings, overrides and isolates of the direction, and separators of lines.
bool TurnsText(std::uint32_t code) {
  return code == 0x061c || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

bool IsControl(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code <= 0x9f); }

enum class Style { kLines, kOneLine, kJson };

std::string Escaped(std::string_view text, Style style) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const bool layout = text.front() == '\n' || text.front() == '\t';
    if (!character.valid) {
      safe += style == Style::kJson ? "\\ufffd" : fmt::format("\\x{:02x}", character.code);
    } else if ((layout || (text.front() == '\r' && style == Style::kJson)) &&
               style != Style::kOneLine) {
      safe += text.front();
    } else if (IsControl(character.code) || TurnsText(character.code)) {
      const bool wide = style == Style::kJson || character.code > 0xff;
      safe += wide ? fmt::format("\\u{:04x}", character.code)
                   : fmt::format("\\x{:02x}", character.code);
    } else {
      safe += text.substr(0, character.length);
    }
    text.remove_prefix(character.length);
  }
  return safe;
}

// Characters that take a place on the screen: all but "\x1b[32m" and its like.
std::size_t ShownWidth(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t colour = text.find("\x1b["); colour != std::string_view::npos;
       colour = text.find("\x1b[")) {
    width += TextWidth(text.substr(0, colour));
    text.remove_prefix(std::min(text.find('m', colour), text.size() - 1) + 1);
  }
  return width + TextWidth(text);
}

std::string WrappedLine(std::string_view line, std::size_t width, std::size_t indent) {
  if (ShownWidth(line) <= width) return std::string(line);
  const std::size_t own_indent = std::min(line.find_first_not_of(' '), line.size());
  std::string wrapped(line.substr(0, own_indent));
  std::size_t column = own_indent;
  bool first_in_row = true;
  for (std::size_t at = own_indent; at < line.size();) {
    // A word with the blanks before it, which a break replaces.
    const std::size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::string_view shown = line.substr(word, end - word);
    if (!first_in_row && column + (word - at) + ShownWidth(shown) > width) {
      wrapped += "\n" + std::string(own_indent + indent, ' ');
      column = own_indent + indent;
    } else {
      wrapped += line.substr(at, word - at);
      column += word - at;
    }
    wrapped += shown;
    column += ShownWidth(shown);
    first_in_row = false;
    at = end;
  }
  return wrapped;
}

}  // namespace

std::string ForTerminal(std::string_view text) { return Escaped(text, Style::kLines); }

std::string OneLineForTerminal(std::string_view text) { return Escaped(text, Style::kOneLine); }

std::string JsonForTerminal(std::string_view json) { return Escaped(json, Style::kJson); }

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

std::string WrappedText(std::string_view text, std::size_t width, std::size_t indent) {
  std::string wrapped;
  while (true) {
    const std::size_t end = text.find('\n');
    wrapped += WrappedLine(text.substr(0, end), width, indent);
    if (end == std::string_view::npos) return wrapped;
    wrapped += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace zeus
