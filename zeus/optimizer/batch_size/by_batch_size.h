#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

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

}  // namespace zeus
