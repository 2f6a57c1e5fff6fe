#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"

// Text from outside: numbers in it, showing it to people and putting it into documents.
namespace zeus {

// The whole text must be the number; kInvalidArgument quotes it otherwise.
Result<std::int64_t> ParseInteger(std::string_view text);
Result<std::uint64_t> ParseUnsigned(std::string_view text, int base = 10);
Result<double> ParseDouble(std::string_view text);

// Returns the text without blanks at both ends.
std::string_view Trim(std::string_view text);

// Splits "a, b" into {"a", "b"}, each part trimmed; an empty text gives one empty part.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

// Returns the text with its ASCII letters in lower case.
std::string LowerCase(std::string_view text);

// Text from outside goes into messages only in a form that is harmless in a terminal: control
// characters are escaped and long text is cut. Printable() is for the middle of a sentence (a
// path, a library's own message), Quote() for values, in quotation marks.
std::string Printable(std::string_view text);
std::string Quote(std::string_view text);

// The number of characters that must be put in, left out, replaced or swapped with their neighbour
// to make one word of the other.
std::size_t EditDistance(std::string_view one, std::string_view other);

// The known word that a mistyped one probably means: the nearest by edit distance, unless a third
// of the word or more would have to change. Of several that are equally near it is the
// first.
std::optional<std::string> ClosestWord(std::string_view mistyped,
                                       const std::vector<std::string>& known);

// Escapes text for XML and HTML, also for attributes in double quotes. Control characters that XML
// cannot hold become blanks.
std::string EscapeXml(std::string_view text);

}  // namespace zeus
