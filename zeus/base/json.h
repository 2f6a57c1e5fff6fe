#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus {

// Parses text from outside. kInvalidArgument with the position when it is not JSON.
Result<Json> ParseJson(std::string_view text);

// Returns the JSON in one line, or indented by so many blanks a level. Bytes that are not UTF-8 are
// replaced, so it never fails.
std::string JsonText(const Json& json, int indent = -1);

// The number, or null where it is infinite or NaN: JSON has no other numbers than finite ones.
Json FiniteOrNull(double value);

namespace internal {
Error MissingField(std::string_view field);
Error WrongType(std::string_view field, const Json& value);
}  // namespace internal

// A required field: kInvalidArgument, naming the field, when it is missing or of another type.
template <class T>
Result<T> GetField(const Json& object, std::string_view field) {
  const auto found = object.find(field);
  if (found == object.end()) return internal::MissingField(field);
  try {
    return found->template get<T>();
  } catch (const nlohmann::json::exception&) {
    return internal::WrongType(field, *found);
  }
}

// An optional field: nullopt when it is missing or null, an error when it is of another type.
template <class T>
Result<std::optional<T>> GetOptionalField(const Json& object, std::string_view field) {
  const auto found = object.find(field);
  if (found == object.end() || found->is_null()) return std::optional<T>();
  ZEUS_TRY(T value, GetField<T>(object, field));
  return std::optional<T>(std::move(value));
}

}  // namespace zeus
