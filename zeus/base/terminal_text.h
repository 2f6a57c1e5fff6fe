#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Text on its way to a terminal. A terminal obeys control characters: they retitle windows, hide
// lines and type answers. So text from outside (other users' fields, drivers, files, servers)
// passes through one of these functions before it is printed.
namespace zeus {

// Escapes text of several lines: line ends and tabs stay. Other control characters (C0, DEL, C1),
// bytes that are no UTF-8 and characters that turn the direction of writing become \x1b or \u202e.
// Nothing is cut.
std::string ForTerminal(std::string_view text);

// Escapes one line, such as a message or a cell of a table: line ends and tabs are escaped
// too.
std::string OneLineForTerminal(std::string_view text);

// Escapes JSON so that it stays JSON: control characters that its writer leaves alone (DEL, C1) and
// those that turn the direction of writing become \u009b.
std::string JsonForTerminal(std::string_view json);

// The number of characters of a text in UTF-8, which is its width in columns.
std::size_t TextWidth(std::string_view text);

enum class Align { kLeft, kRight };

// Formats a table: columns as wide as their widest cell, two blanks apart, each row one line. Width
// is counted in characters of UTF-8. Rows have as many cells as `alignment`.
std::string AlignedRows(const std::vector<Align>& alignment,
                        const std::vector<std::vector<std::string>>& rows);

// Breaks the lines of a text at blanks so that none is wider than `width` characters of UTF-8, not
// counting control sequences that set colours. A word that is wider stays whole. The
// continuation of a line is indented as the line itself is, and by `indent` blanks more. Line
// breaks of the text stay.
std::string WrappedText(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace zeus
