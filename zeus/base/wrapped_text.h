#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zeus {

// Breaks the lines of a text at blanks so that none is wider than `width` characters of UTF-8, not
// counting control sequences that set colours. A word that is wider itself stays whole. What
// continues a line begins with `indent` blanks and with those that the line itself began with. Line
// breaks of the text stay.
std::string WrappedText(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace zeus
