#include "zeus/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>

#include "zeus/base/json.h"

namespace zeus {
namespace {

template <class Number, class... Base>
Result<Number> ParseNumber(std::string_view text, const char* kind, Base... base) {
  Number number{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is not {}", Quote(text), kind)};
  return number;
}

// Bytes of the UTF-8 character that `text` begins with, if it is one beyond ASCII; else 0.
std::size_t LengthBeyondAscii(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead >= 0xf8   ? 0
                             : lead >= 0xf0 ? 4
                             : lead >= 0xe0 ? 3
                             : lead >= 0xc2 ? 2
                                            : 0;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  if (length == 0 || text.size() < length) return 0;
  const std::string_view rest = text.substr(1, length - 1);
  // U+0080 to U+009f are control characters.
  if (lead == 0xc2 && static_cast<unsigned char>(rest.front()) < 0xa0) return 0;
  return std::all_of(rest.begin(), rest.end(), continues) ? length : 0;
}

std::string Escape(std::string_view text, std::size_t shown) {
  std::string escaped;
  std::size_t at = 0;
  while (at < std::min(text.size(), shown)) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = LengthBeyondAscii(text.substr(at));
    if (length > 0) {
      escaped += text.substr(at, length);
    } else if (std::isprint(byte) != 0) {
      escaped += text[at];
    } else {
      escaped += fmt::format("\\x{:02x}", byte);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return at < text.size() ? escaped + "..." : escaped;
}

}  // namespace

Result<std::int64_t> ParseInteger(std::string_view text) {
  return ParseNumber<std::int64_t>(text, "an integer", 10);
}

Result<std::uint64_t> ParseUnsigned(std::string_view text, int base) {
  return ParseNumber<std::uint64_t>(text, "a non-negative integer", base);
}

Result<double> ParseDouble(std::string_view text) { return ParseNumber<double>(text, "a number"); }

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.push_back(Trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string Printable(std::string_view text) { return Escape(text, 200); }

std::string Quote(std::string_view text) { return '"' + Escape(text, 40) + '"'; }

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
  constexpr std::size_t kLongest = 64;  // A longer text is not a mistyped word.
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

std::string EscapeXml(std::string_view text) {
  // Bytes that are not UTF-8 are replaced, as in JSON.
  const std::string json = JsonText(Json(text));
  std::string escaped;
  for (const char c : Json::parse(json).get<std::string>()) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace zeus
