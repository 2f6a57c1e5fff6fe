#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>

#include "zeus/base/clock.h"

namespace zeus {

// When windows began and ended of late: where the load of a device tends to change. One owner.
class EdgeLog {
 public:
  // In order of time.
  void Mark(TimePoint time) {
    if (times_.size() == kMost) times_.pop_front();
    times_.push_back(time);
  }

  // Whether there is one between the two, near the present: looks from the end.
  bool AnyOfLate(TimePoint after, TimePoint before) const {
    for (auto time = times_.rbegin(); time != times_.rend() && *time > after; ++time)
      if (*time < before) return true;
    return false;
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
};

}  // namespace zeus
