#include "zeus/server/target.h"

#include <fmt/format.h>

#include <utility>

#include "zeus/base/text.h"

namespace zeus::server {
namespace {

enum class Plus { kStays, kIsBlank };  // It is a blank in queries only.

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
