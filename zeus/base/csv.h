#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zeus {

// A field of comma-separated values as RFC 4180 wants it: in quotation marks where it holds a
// comma, a quotation mark or the end of a line. Ends of lines become blanks: a record stays a line.
std::string CsvField(std::string_view text);

// Fields with commas between them, without the end of the line.
std::string CsvRow(std::span<const std::string> fields);

}  // namespace zeus
