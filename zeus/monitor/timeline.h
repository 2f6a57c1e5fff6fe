#pragma once

#include <cstddef>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus {

// A value over time in bounded memory: recent samples as they came, older ones thinned out so that
// the whole recording is covered. Each sample is the mean of what it stands for, from its time up
// to the next sample's. Not thread-safe.
class Timeline {
 public:
  struct Sample {
    TimePoint time;  // Begin of the span.
    double value;    // Mean over the span.
    TimePoint end{};
  };

  // Holds between capacity/2 and capacity samples once that many came.
  explicit Timeline(std::size_t capacity = 8192);

  // `value` holds from `begin` to `end`; begins where the last span ended or later.
  void Add(TimePoint begin, TimePoint end, double value);

  // Spans that overlap [begin, end), oldest first.
  std::vector<Sample> Between(TimePoint begin, TimePoint end) const;

  std::size_t size() const { return spans_.size(); }

 private:
  struct Span {
    TimePoint begin;
    TimePoint end;
    double value;
  };

  void Compact();

  std::size_t capacity_;
  std::vector<Span> spans_;
};

}  // namespace zeus
