#pragma once

#include <string>
#include <string_view>

namespace zeus {

// Text from outside (a path, a library's own message) for the middle of a sentence: what a terminal
// could obey is escaped, and after 200 characters it is cut. Quote() is for values, which are
// short.
std::string Printable(std::string_view text);

}  // namespace zeus
