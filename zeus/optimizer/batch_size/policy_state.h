#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/result.h"

namespace zeus {

// A map from batch size to T, sorted and in one piece of memory: a job has so few batch sizes that
// this beats a tree. References are valid until the next insertion. One owner.
template <class T>
class ByBatchSize {
 public:
  using Entry = std::pair<int, T>;
  using Place = typename std::vector<Entry>::const_iterator;

  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }

  auto find(int batch_size) { return Find(entries_, batch_size); }
  auto find(int batch_size) const { return Find(entries_, batch_size); }
  // The batch size must be in the map.
  T& at(int batch_size) { return find(batch_size)->second; }
  const T& at(int batch_size) const { return find(batch_size)->second; }

  // Returns the value of the batch size, after inserting `value` if there was none.
  T& emplace(int batch_size, T value) {
    auto place = std::ranges::lower_bound(entries_, batch_size, {}, &Entry::first);
    if (place == entries_.end() || place->first != batch_size)
      place = entries_.emplace(place, batch_size, std::move(value));
    return place->second;
  }
  T& operator[](int batch_size) { return emplace(batch_size, T()); }

 private:
  template <class Entries>
  static auto Find(Entries& entries, int batch_size) {
    const auto place = std::ranges::lower_bound(entries, batch_size, {}, &Entry::first);
    return place != entries.end() && place->first == batch_size ? place : entries.end();
  }

  std::vector<Entry> entries_{};
};

// Helpers to read the saved state of a policy. The state comes from a database and may be damaged;
// a policy then refuses it instead of making arbitrary decisions.

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
