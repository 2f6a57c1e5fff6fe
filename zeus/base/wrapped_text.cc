#include "zeus/base/wrapped_text.h"

#include <algorithm>

#include "zeus/base/text_table.h"

namespace zeus {
namespace {

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
