#include "zeus/wire/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "zeus/base/text.h"

namespace zeus::wire {
namespace {

// How deeply brackets are nested outside of strings. The parser does not mind depth, but what later
// copies or prints its result would use as much stack.
int Nesting(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

// The field of the outermost object whose value could not be read; empty if there is none.
std::string LastField(std::string_view text) {
  std::string field;
  const auto remember = [&field](int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth != 1) return true;
    // A key opens a field; whatever else ends on this level is the value that closes it.
    field = event == Json::parse_event_t::key ? parsed.get<std::string>() : "";
    return true;
  };
  try {
    const Json whole = Json::parse(text, remember);
  } catch (const nlohmann::json::exception&) {  // This is why we are here.
    return field;
  }
  return "";
}

// A field that an object has twice; empty if there is none. Which of the two counts is anybody's
// guess, and proxies and servers guess differently.
std::string RepeatedField(std::string_view text) {
  std::vector<std::set<std::string>> seen;  // By object that is open.
  std::string repeated;
  const auto watch = [&](int, Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key && !seen.back().insert(parsed.get<std::string>()).second)
      repeated = parsed.get<std::string>();
    return true;
  };
  const Json parsed = Json::parse(text, watch, /*allow_exceptions=*/false);
  return repeated;
}

}  // namespace

Result<Json> ParseBody(std::string_view text) {
  if (Nesting(text) > kDeepestNesting)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body is nested more than {} levels deep", kDeepestNesting)};
  Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    const std::string field = LastField(text);
    if (field.empty()) return json.error().While("the body is no JSON object");
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is no JSON value (NaN and infinities are none): {}",
                             Printable(field), json.error().message)};
  }
  if (!json.value().is_object())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body must be a JSON object, not {}", json.value().type_name())};
  if (const std::string field = RepeatedField(text); !field.empty())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is there more than once", Printable(field))};
  return json;
}

}  // namespace zeus::wire
