#include "zeus/store/sql_connection.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "zeus/base/identifier.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

bool AllFinite(const Json& json) {
  if (json.is_number_float()) return std::isfinite(json.get<double>());
  if (!json.is_structured()) return true;
  for (const Json& part : json)
    if (!AllFinite(part)) return false;
  return true;
}

}  // namespace

std::string Placeholders(int first, int last) {
  std::string text = fmt::format("${}", first);
  for (int i = first + 1; i <= last; ++i) text += fmt::format(", ${}", i);
  return text;
}

std::string InsertInto(const std::string& table, const std::string& columns, int count) {
  return "INSERT INTO " + table + " (" + columns + ") VALUES (" + Placeholders(1, count) + ")";
}

Result<std::string> StorableJson(const Json& json) {
  if (!AllFinite(json))
    return Error{ErrorCode::kInternal, "a number that is not finite cannot be stored as JSON"};
  try {
    return json.dump();
  } catch (const nlohmann::json::exception&) {
    return Error{ErrorCode::kInvalidArgument, "text to be stored must be UTF-8"};
  }
}

Status CheckValues(const SqlRow& row, std::string_view what) {
  for (const SqlValue& value : row) {
    const auto* real = std::get_if<double>(&value);
    if (real != nullptr && std::isnan(*real))
      return Error{ErrorCode::kInvalidArgument, std::string(what) + ": a value is not a number"};
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && (text->find('\0') != std::string::npos || !StorableJson(*text).ok()))
      return Error{ErrorCode::kInvalidArgument,
                   std::string(what) + ": text must be UTF-8 without zero bytes: " + Quote(*text)};
  }
  return Ok();
}

// The ids of a name space are a range, which the index on ids finds.
SqlCondition InNameSpace(const std::string& name_space) {
  if (name_space.empty()) return {.sql = fmt::format("id NOT LIKE '%{}%'", kNameSpaceEnd)};
  std::string behind = ScopedId(name_space, "");
  ++behind.back();
  return {.sql = "id > $1 AND id < $2",
          .values = Values(ScopedId(name_space, ""), std::move(behind))};
}

}  // namespace zeus
