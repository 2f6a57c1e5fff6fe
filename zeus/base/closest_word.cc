#include "zeus/base/closest_word.h"

#include <algorithm>

namespace zeus {

std::size_t EditDistance(std::string_view one, std::string_view other) {
  // Rows of the table of optimal string alignment: distance[j] is that between the first i
  // characters of `one` and the first j of `other`.
  std::vector<std::size_t> two_above(other.size() + 1);
  std::vector<std::size_t> above(other.size() + 1);
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t j = 0; j <= other.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    two_above.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[other.size()];
}

std::optional<std::string> ClosestWord(std::string_view mistyped,
                                       const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // A longer text is no word that somebody mistyped.
  if (mistyped.size() > kLongest) return std::nullopt;
  std::optional<std::string> closest;
  // One change is allowed in every word of two letters or more.
  std::size_t least = std::max<std::size_t>(2, (mistyped.size() + 2) / 3);
  for (const std::string& word : known) {
    if (word.size() > kLongest || mistyped.size() < 2) continue;
    const std::size_t distance = EditDistance(mistyped, word);
    if (distance >= least) continue;
    least = distance;
    closest = word;
  }
  return closest;
}

}  // namespace zeus
