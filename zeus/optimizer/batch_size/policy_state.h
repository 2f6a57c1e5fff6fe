#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeus/base/json.h"
#include "zeus/base/result.h"

// Helpers to read the saved state of a policy. The state comes from a database and may be damaged;
// a policy then refuses it instead of making arbitrary decisions.
namespace zeus {

// The version changes when programs of the present version could misread the state.
inline constexpr std::string_view kPolicyStateFormat = "zeus.batch_size_policy/1";

inline Json NewPolicyState(std::string_view policy) {
  Json state;
  state["format"] = kPolicyStateFormat;
  state["policy"] = policy;
  return state;
}

inline Error DamagedState(std::string_view field) {
  return {ErrorCode::kInternal, "the saved state of the batch size policy is damaged at \"" +
                                    std::string(field) + "\": restore it from the job's events"};
}

inline Status CheckArray(const Json& value, std::string_view field) {
  if (!value.is_array()) return DamagedState(field);
  return Ok();
}

// Returns the part of the state called `field` without copying it.
inline Result<const Json*> FindPart(const Json& state, std::string_view field) {
  const auto found = state.find(field);
  if (found == state.end()) return DamagedState(field);
  return &*found;
}

// Reads one number of a list. Records that occur often are saved as lists such as [32, 1.5, 2],
// which take less space than objects.
template <class T>
Result<T> ElementAt(const Json& list, std::size_t index, std::string_view field) {
  if (!list.is_array() || index >= list.size() || !list[index].is_number())
    return DamagedState(field);
  if constexpr (std::is_integral_v<T>) {
    if (!list[index].is_number_integer()) return DamagedState(field);
  }
  return list[index].template get<T>();
}

// Reads one number of a list, which must be finite.
inline Result<double> NumberAt(const Json& list, std::size_t index, std::string_view field) {
  ZEUS_TRY(const double value, ElementAt<double>(list, index, field));
  if (!std::isfinite(value)) return DamagedState(field);
  return value;
}

}  // namespace zeus
