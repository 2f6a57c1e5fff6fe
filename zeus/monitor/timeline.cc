#include "zeus/monitor/timeline.h"

#include <algorithm>

namespace zeus {

Timeline::Timeline(std::size_t capacity) : capacity_(std::max<std::size_t>(capacity, 4)) {}

void Timeline::Add(TimePoint begin, TimePoint end, double value) {
  if (!spans_.empty() && spans_.back().end == begin && spans_.back().value == value) {
    spans_.back().end = end;  // A value that stays costs nothing.
    return;
  }
  if (spans_.size() == capacity_) Compact();
  spans_.push_back({.begin = begin, .end = end, .value = value});
}

// Merges the older half pairwise: what is twice as old is told half as finely. Times of which
// nothing is known stay between spans, unless there is nothing else to merge.
void Timeline::Compact() {
  const std::size_t half = spans_.size() / 2;
  const auto adjoin = [](const Span& a, const Span& b) { return a.end == b.begin; };
  const auto older = spans_.begin() + static_cast<std::ptrdiff_t>(half);
  const bool only_gaps = std::adjacent_find(spans_.begin(), older, adjoin) == older;
  std::vector<Span> kept;
  kept.reserve(capacity_);
  for (std::size_t i = 0; i < half;) {
    const Span& first = spans_[i++];
    if (i == half || !(only_gaps || adjoin(first, spans_[i]))) {
      kept.push_back(first);
      continue;
    }
    const Span& second = spans_[i++];
    const Seconds a = first.end - first.begin;
    const Seconds b = second.end - second.begin;
    const double share = a + b > Seconds(0) ? a / (a + b) : 0.5;
    kept.push_back({.begin = first.begin,
                    .end = second.end,
                    .value = first.value * share + second.value * (1.0 - share)});
  }
  kept.insert(kept.end(), spans_.begin() + static_cast<std::ptrdiff_t>(half), spans_.end());
  spans_ = std::move(kept);
}

std::vector<Timeline::Sample> Timeline::Between(TimePoint begin, TimePoint end) const {
  const auto first = std::ranges::lower_bound(spans_, begin, {}, &Span::end);
  std::vector<Sample> samples;
  for (auto span = first; span != spans_.end() && span->begin < end; ++span) {
    if (span->end <= begin) continue;
    samples.push_back({.time = span->begin, .value = span->value, .end = span->end});
  }
  return samples;
}

}  // namespace zeus
