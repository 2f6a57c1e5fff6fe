#pragma once

#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/units.h"
#include "zeus/base/wall_time_text.h"

// Reads quantities and times from fields of JSON objects.
namespace zeus::wire {

// Joules, watts or seconds; negative ones are refused.
template <class Quantity>
void RequireQuantity(FieldReader& fields, const char* field, Quantity& target) {
  double number = 0;
  fields.Require(field, number);
  if (number < 0) fields.Fail(field, fmt::format("must not be negative: {}", number));
  target = Quantity(number);
}
template <class Quantity>
void ReadQuantity(FieldReader& fields, const char* field, std::optional<Quantity>& target) {
  std::optional<double> number;
  fields.Read(field, number);
  if (number && *number < 0) fields.Fail(field, fmt::format("must not be negative: {}", *number));
  if (number) target = Quantity(*number);
}

inline void ReadTime(FieldReader& fields, const char* field, std::optional<WallTime>& target) {
  std::string text;
  fields.ReadUnlessNull(field, text);
  if (text.empty()) return;
  const Result<WallTime> time = ParseWallTime(text);
  if (time.ok())
    target = time.value();
  else
    fields.Fail(field, time.error().message);
}
inline void RequireTime(FieldReader& fields, const char* field, WallTime& target) {
  std::optional<WallTime> time;
  ReadTime(fields, field, time);
  if (!time) fields.Fail(field, "must be a time");
  target = time.value_or(WallTime());
}

// A count that is at least 1.
inline void RequirePositive(FieldReader& fields, const char* field, int& target) {
  fields.Require(field, target);
  if (target < 1) fields.Fail(field, "must be 1 or more");
}

// Returns null for a value that is not known.
template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
inline Json OrNull(std::optional<Joules> value) { return value ? Json(value->value()) : Json(); }
inline Json OrNull(std::optional<Watts> value) { return value ? Json(value->value()) : Json(); }

}  // namespace zeus::wire
