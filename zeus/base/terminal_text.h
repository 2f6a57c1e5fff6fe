#pragma once

#include <string>
#include <string_view>

// Text from outside (other users' fields, drivers, files, servers) on its way to a terminal. A
// terminal obeys control characters: they retitle windows, hide lines and type answers. So nothing
// is printed for people without passing through one of these.
namespace zeus {

// For text of several lines: line ends and tabs stay. Other control characters (C0, DEL, C1), bytes
// that are no UTF-8 and characters that turn the direction of writing become \x1b or \u202e.
// Nothing is cut.
std::string ForTerminal(std::string_view text);

// The same for one line, such as a message or a cell of a table: line ends and tabs are escaped
// too.
std::string OneLineForTerminal(std::string_view text);

// JSON stays JSON: control characters that its writer leaves alone (DEL, C1) and those that turn
// the direction of writing become \u009b.
std::string JsonForTerminal(std::string_view json);

}  // namespace zeus
