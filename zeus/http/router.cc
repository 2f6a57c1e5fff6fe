#include "zeus/http/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::http {
namespace {

enum class Plus { kStays, kIsBlank };  // A plus sign means a blank in queries only.

// The length of the UTF-8 sequence that begins with this byte; 0 when none does.
std::size_t SequenceSize(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// Whether the text is UTF-8 in its shortest form, without surrogates and without NUL.
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
  // Databases differ in how they treat such bytes, so they are refused here.
  if (!IsText(decoded))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the target holds what is no UTF-8 text: {}", Quote(text))};
  return decoded;
}

// Removes the text up to the separator from `rest`, with the separator, and returns it.
std::string_view Next(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

bool IsParameter(std::string_view segment) {
  return segment.starts_with('{') && segment.ends_with('}');
}

std::optional<std::vector<std::string>> Match(const std::vector<std::string>& pattern,
                                              const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return std::nullopt;
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (IsParameter(pattern[i])) {
      if (segments[i].empty()) return std::nullopt;
      parameters.push_back(segments[i]);
    } else if (pattern[i] != segments[i]) {
      return std::nullopt;
    }
  }
  return parameters;
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

void Router::Add(Route route) {
  patterns_.push_back(ParseTarget(route.pattern).value().segments);
  routes_.push_back(std::move(route));
}

RouteMatch Router::Find(std::string_view method, const std::vector<std::string>& segments) const {
  RouteMatch match;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto parameters = Match(patterns_[i], segments);
    if (!parameters) continue;
    const Route& route = routes_[i];
    const bool has_head = route.method == "GET" && route.access != Access::kWrite;
    if (route.method == method || (has_head && method == "HEAD"))
      return {.route = &route, .parameters = *std::move(parameters)};
    match.allowed.emplace_back(route.method);
    if (has_head) match.allowed.emplace_back("HEAD");
  }
  std::ranges::sort(match.allowed);
  return match;
}

Answer NoRouteAnswer(const Request& request, const RouteMatch& match) {
  if (match.allowed.empty())
    return RefusalAnswer(404, "not_found", "there is no such path: see /openapi.json");
  const std::string methods = fmt::format("{}", fmt::join(match.allowed, ", "));
  Answer answer = RefusalAnswer(
      405, "method_not_allowed",
      fmt::format("this path does not know {}: use {}", Printable(request.method), methods));
  answer.headers.emplace_back("Allow", methods);
  return answer;
}

Status CheckQuery(const Route& route, const Request& request) {
  if (route.dialect == Dialect::kReference) return Ok();
  for (const auto& [name, value] : request.query)
    if (std::ranges::find(route.query, name) == route.query.end())
      return InvalidArgument(fmt::format("{}: is no parameter of this path", Printable(name)));
  return Ok();
}

Work RouteWork(const Route* route) {
  if (route == nullptr || route->immediate) return Work::kImmediate;
  if (route->slow) return Work::kSlow;
  return route->access == Access::kWrite ? Work::kWrite : Work::kRead;
}

}  // namespace zeus::http
