#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"

namespace zeus {

// When windows began and ended of late: where the load of a device tends to change. One owner.
class EdgeLog {
 public:
  enum class Kind {
    kPlain,
    kWorkEnded,  // The program waited for the device until right before this edge.
  };

  // In order of time.
  void Mark(TimePoint time, Kind kind = Kind::kPlain) {
    if (times_.size() == kMost) times_.pop_front();
    times_.push_back(time);
    if (time > last_) {
      before_last_ = std::exchange(last_, time);
      before_last_ended_work_ = std::exchange(last_ended_work_, false);
    }
    if (kind == Kind::kPlain) return;
    ++after_work_;
    last_ended_work_ = true;
    if (work_ended_.size() == kMost) work_ended_.pop_front();
    if (work_ended_.empty() || work_ended_.back() < time) work_ended_.push_back(time);
  }

  // Number of edges so far at which work ended.
  std::size_t after_work() const { return after_work_; }

  // Whether the last one before `before`, which is the present or nearly so, came after `after`.
  bool AnyOfLate(TimePoint after, TimePoint before) const {
    return (last_ < before ? last_ : before_last_) > after;
  }
  // Whether an edge was marked at `time`, one of the last two instants, and work ended there.
  bool WorkEndedAt(TimePoint time) const {
    return time == last_ ? last_ended_work_ : time == before_last_ && before_last_ended_work_;
  }
  bool IsEdge(TimePoint time) const { return time == last_ || time == before_last_; }

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
  // Instants at which work ended; of more than a few, the last ones.
  std::vector<TimePoint> WorkEndedBetween(TimePoint begin, TimePoint end) const {
    constexpr std::ptrdiff_t kFew = 8;
    const auto first = std::ranges::upper_bound(work_ended_, begin);
    const auto last = std::ranges::upper_bound(work_ended_, end);
    return {last - std::min(kFew, last - first), last};
  }

 private:
  // More than a stretch between two updates can make use of.
  static constexpr std::size_t kMost = 4096;

  std::deque<TimePoint> times_;
  std::deque<TimePoint> work_ended_;
  TimePoint last_ = TimePoint::min();
  TimePoint before_last_ = TimePoint::min();  // A different instant.
  std::size_t after_work_ = 0;
  bool last_ended_work_ = false;
  bool before_last_ended_work_ = false;
};

}  // namespace zeus
