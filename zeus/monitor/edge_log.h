#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <utility>

#include "zeus/base/clock.h"

namespace zeus {

// When windows began and ended of late: where the load of a device tends to change. One owner.
class EdgeLog {
 public:
  // In order of time.
  void Mark(TimePoint time) {
    if (times_.size() == kMost) times_.pop_front();
    times_.push_back(time);
    if (time > last_) before_last_ = std::exchange(last_, time);
  }

  // Whether the last one before `before`, which is the present or nearly so, came after `after`.
  bool AnyOfLate(TimePoint after, TimePoint before) const {
    return (last_ < before ? last_ : before_last_) > after;
  }

  struct Inside {
    std::size_t count = 0;
    TimePoint first{};
    TimePoint last{};
  };
  Inside Between(TimePoint begin, TimePoint end) const {
    const auto first = std::ranges::upper_bound(times_, begin);
    const auto last = std::lower_bound(first, times_.end(), end);
    if (first == last) return {};
    const bool one_instant = *first == *std::prev(last);
    return {.count = one_instant ? 1 : static_cast<std::size_t>(last - first),
            .first = *first,
            .last = *std::prev(last)};
  }

 private:
  // More than a stretch between two updates can make use of.
  static constexpr std::size_t kMost = 4096;

  std::deque<TimePoint> times_;
  TimePoint last_ = TimePoint::min();
  TimePoint before_last_ = TimePoint::min();  // A different instant.
};

}  // namespace zeus
