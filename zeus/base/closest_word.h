#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeus {

// How many characters must be put in, left out, replaced or swapped with their neighbour to make
// one word of the other.
std::size_t EditDistance(std::string_view one, std::string_view other);

// The known word that a mistyped one probably means: the nearest by edit distance, unless a third
// of the word or more would have to change. The first of several that are equally near.
std::optional<std::string> ClosestWord(std::string_view mistyped,
                                       const std::vector<std::string>& known);

}  // namespace zeus
