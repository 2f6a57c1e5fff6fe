#include "zeus/server/target.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/text.h"

namespace zeus::server {
namespace {

enum class Plus { kStays, kIsBlank };  // It is a blank in queries only.

// The bytes that a sequence of UTF-8 takes, from its first one; 0 when none begins so.
std::size_t SequenceSize(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// UTF-8 in its shortest form, without surrogates and without NUL.
bool IsText(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t size = SequenceSize(first);
    if (first == 0 || size == 0 || text.size() - i < size) return false;
    char32_t code = size == 1 ? first : first & (0x7FU >> size);
    for (std::size_t j = 1; j < size; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xC0U) != 0x80U) return false;
      code = (code << 6U) | (next & 0x3FU);
    }
    const bool too_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
    if (too_long || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += size;
  }
  return true;
}

Result<std::string> Decode(std::string_view text, Plus plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::kIsBlank) {
      decoded += ' ';
    } else if (text[i] == '%') {
      const auto code = ParseUnsigned(text.substr(i + 1, 2), 16);
      if (!code.ok() || text.size() < i + 3)
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("the target holds a broken escape: {}", Quote(text))};
      decoded += static_cast<char>(code.value());
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  // Databases differ in what they make of it, so it does not get that far.
  if (!IsText(decoded))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the target holds what is no UTF-8 text: {}", Quote(text))};
  return decoded;
}

// The text up to `separator`, which is taken off the rest with it.
std::string_view Next(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

}  // namespace

Result<Target> ParseTarget(std::string_view text) {
  if (!text.starts_with('/'))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the target must be a path: {}", Quote(text))};
  Target target;
  std::string_view query = text;
  std::string_view path = Next(query, '?').substr(1);
  do {
    ZEUS_TRY(std::string segment, Decode(Next(path, '/'), Plus::kStays));
    target.segments.push_back(std::move(segment));
  } while (!path.empty());
  while (!query.empty()) {
    std::string_view value = Next(query, '&');
    if (value.empty()) continue;
    ZEUS_TRY(std::string key, Decode(Next(value, '='), Plus::kIsBlank));
    ZEUS_TRY(std::string decoded, Decode(value, Plus::kIsBlank));
    if (!target.query.emplace(key, std::move(decoded)).second)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: is there more than once", Printable(key))};
  }
  return target;
}

}  // namespace zeus::server
