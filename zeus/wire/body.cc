#include "zeus/wire/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "zeus/base/json.h"
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

// What the parser passes on its way, for messages that name a field.
class FieldWatch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) seen_.emplace_back();
    if (event == Event::object_end) seen_.pop_back();
    if (event == Event::key && !seen_.back().insert(parsed.get<std::string>()).second)
      repeated_ = parsed.get<std::string>();
    // A key opens a field; whatever else ends on this level is the value that closes it.
    if (depth == 1) open_ = event == Event::key ? parsed.get<std::string>() : "";
    return true;
  }

  // Of the outermost object, when the parser gave up in its value; else empty.
  const std::string& open() const { return open_; }
  // That an object has twice; else empty. Which of the two counts is anybody's guess, and proxies
  // and servers guess differently.
  const std::string& repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> seen_{};  // By object that is open.
  std::string open_{};
  std::string repeated_{};
};

Result<Json> Parse(std::string_view text, FieldWatch& watch) {
  try {
    return Json::parse(text, std::ref(watch));
  } catch (const nlohmann::json::exception&) {
    return ParseJson(text);  // For its words; requests like this are rare.
  }
}

}  // namespace

Result<Json> ParseBody(std::string_view text) {
  if (Nesting(text) > kDeepestNesting)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body is nested more than {} levels deep", kDeepestNesting)};
  FieldWatch watch;
  Result<Json> json = Parse(text, watch);
  if (!json.ok()) {
    const std::string& field = watch.open();
    if (field.empty()) return json.error().While("the body is no JSON object");
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is no JSON value (NaN and infinities are none): {}",
                             Printable(field), json.error().message)};
  }
  if (!json.value().is_object())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the body must be a JSON object, not {}", json.value().type_name())};
  if (!watch.repeated().empty())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: is there more than once", Printable(watch.repeated()))};
  return json;
}

}  // namespace zeus::wire
