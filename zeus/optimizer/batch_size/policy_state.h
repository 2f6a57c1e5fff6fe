#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "zeus/base/json.h"
#include "zeus/base/result.h"

// Reading what a policy saved. The state comes from a database: it may be damaged, and then a
// policy refuses it instead of deciding by chance.
namespace zeus {

// Changes when a program of today could misread the state.
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

// The part of the state called `field`, without a copy of it.
inline Result<const Json*> FindPart(const Json& state, std::string_view field) {
  const auto found = state.find(field);
  if (found == state.end()) return DamagedState(field);
  return &*found;
}

// Numbers of a fixed list, which saves space where there are many: [32, 1.5, 2].
template <class T>
Result<T> ElementAt(const Json& list, std::size_t index, std::string_view field) {
  if (!list.is_array() || index >= list.size() || !list[index].is_number())
    return DamagedState(field);
  if constexpr (std::is_integral_v<T>) {
    if (!list[index].is_number_integer()) return DamagedState(field);
  }
  return list[index].template get<T>();
}

// A finite one.
inline Result<double> NumberAt(const Json& list, std::size_t index, std::string_view field) {
  ZEUS_TRY(const double value, ElementAt<double>(list, index, field));
  if (!std::isfinite(value)) return DamagedState(field);
  return value;
}

}  // namespace zeus
