#include "zeus/base/json.h"

#include <fmt/format.h>

#include <cmath>

namespace zeus {

Result<Json> ParseJson(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("not valid JSON at byte {}", error.byte)};
  } catch (const nlohmann::json::out_of_range&) {
    return Error{ErrorCode::kInvalidArgument, "not valid JSON: a number is too large"};
  }
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json FiniteOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

namespace internal {

Error MissingField(std::string_view field) {
  return {ErrorCode::kInvalidArgument, fmt::format("field \"{}\" is missing", field)};
}

Error WrongType(std::string_view field, const Json& value) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("field \"{}\" has the wrong type ({})", field, value.type_name())};
}

}  // namespace internal
}  // namespace zeus
