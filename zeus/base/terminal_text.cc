#include "zeus/base/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace zeus {
namespace {

// A character and the bytes it takes; a byte that begins none stands for itself, as invalid.
struct Character {
  std::uint32_t code = 0;
  std::size_t length = 1;
  bool valid = true;
};

Character FirstOf(std::string_view text) {
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
    const Character character = FirstOf(text);
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

}  // namespace

std::string ForTerminal(std::string_view text) { return Escaped(text, Style::kLines); }

std::string OneLineForTerminal(std::string_view text) { return Escaped(text, Style::kOneLine); }

std::string JsonForTerminal(std::string_view json) { return Escaped(json, Style::kJson); }

}  // namespace zeus
