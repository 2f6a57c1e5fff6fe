#include "zeus/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <system_error>

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

std::string Escape(std::string_view text, std::size_t shown) {
  std::string escaped;
  for (const char c : text.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isprint(byte) != 0) {
      escaped += c;
    } else {
      escaped += fmt::format("\\x{:02x}", byte);
    }
  }
  return text.size() > shown ? escaped + "..." : escaped;
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

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string Printable(std::string_view text) { return Escape(text, 200); }

std::string Quote(std::string_view text) { return '"' + Escape(text, 40) + '"'; }

}  // namespace zeus
