#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/job_service.h"

namespace zeus::wire {

// Reads quantities and times from fields of JSON objects.

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

// Parses the JSON bodies of requests and answers, with limits against hostile ones.

// The deepest nesting that is accepted: no message of ours needs more.
inline constexpr int kDeepestNesting = 16;

// The greatest number of values in a request: many small values take much memory when parsed.
inline constexpr std::size_t kMostValues = std::size_t{1} << 21;

// The greatest number of fields of one object: the time to look up a field grows with it.
inline constexpr std::size_t kMostFields = 512;

// Parses a body, which is one JSON object. Otherwise the error is kInvalidArgument, with the name
// of the field whose value is not JSON. NaN and infinities are not JSON.
Result<Json> ParseBody(std::string_view text, std::size_t most_values = kMostValues);

// The bodies of requests of /v1 (docs/server.md), except job specs, whose JSON is in
// zeus/job/job_spec.h. The job and the trial are in the path, so they are parameters here. Readers
// refuse unknown fields, so that a misspelt one is noticed.

Json ToJson(const TrialRequest& request);
Result<TrialRequest> TrialRequestFromJson(std::string job_id, const Json& json);

Json ToJson(const TrialReport& report);
Result<TrialReport> TrialReportFromJson(std::string job_id, std::int64_t trial, const Json& json);

Json ToJson(const TrialEnd& end);
Result<TrialEnd> TrialEndFromJson(std::string job_id, std::int64_t trial, const Json& json);

Json ToJson(const EpochCostReport& report);
Result<EpochCostReport> EpochCostReportFromJson(std::string job_id, const Json& json);

}  // namespace zeus::wire
