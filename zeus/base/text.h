#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeus/base/result.h"

// Text from outside: numbers in it, and showing it to people.
namespace zeus {

// The whole text must be the number; kInvalidArgument quotes it otherwise.
Result<std::int64_t> ParseInteger(std::string_view text);
Result<std::uint64_t> ParseUnsigned(std::string_view text, int base = 10);
Result<double> ParseDouble(std::string_view text);

// Without blanks at both ends.
std::string_view Trim(std::string_view text);

// ASCII letters in lower case.
std::string LowerCase(std::string_view text);

// What came from outside goes into messages only in a form that a terminal survives: control
// characters are escaped and long text is cut. Printable() is for the middle of a sentence (a
// path, a library's own message), Quote() for values, in quotation marks.
std::string Printable(std::string_view text);
std::string Quote(std::string_view text);

}  // namespace zeus
