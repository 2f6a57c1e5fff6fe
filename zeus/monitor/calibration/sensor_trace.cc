#include "zeus/monitor/calibration/sensor_trace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace zeus::calibration {
namespace {

// A moment of change that is this many times less certain than the usual one is left out.
constexpr double kCertaintyRatio = 4;
// Intervals this much shorter than a period show that it is several real periods …
constexpr double kShortInterval = 0.75;
// … if so large a part of all intervals are so short.
constexpr double kShortShare = 0.1;

Seconds Median(std::vector<Seconds> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void SensorTrace::Add(TimePoint time, double value) {
  estimator_.Add(time, value);
  if (last_poll_ && last_poll_->value != value)
    changes_.push_back({.after = last_poll_->time, .seen = time, .value = value});
  last_poll_ = SensorReading{time, value};
}

Seconds SensorTrace::PollInterval() const {
  if (changes_.empty()) return Seconds(0);
  std::vector<Seconds> gaps;
  gaps.reserve(changes_.size());
  for (const Change& change : changes_) gaps.emplace_back(change.seen - change.after);
  return Median(std::move(gaps));
}

Seconds SensorTrace::LikelyPeriod(Seconds first_guess) const {
  std::vector<Seconds> intervals;
  for (std::size_t i = 1; i < changes_.size(); ++i)
    intervals.emplace_back(changes_[i].middle() - changes_[i - 1].middle());
  const auto enough = static_cast<std::size_t>(
      std::max(2.0, std::ceil(kShortShare * static_cast<double>(intervals.size()))));
  Seconds period = first_guess;
  for (;;) {
    std::erase_if(intervals, [&](Seconds i) { return i >= kShortInterval * period; });
    if (intervals.size() < enough) return period;
    period = Median(intervals);
  }
}

// Least squares of the moments of change over the number of periods since the first one.
Estimate SensorTrace::FitLattice(Seconds period) const {
  double count = 0;
  double sum_n = 0;
  double sum_t = 0;
  double sum_nn = 0;
  double sum_nt = 0;
  double sum_tt = 0;
  double n = 0;
  const TimePoint origin = changes_.front().middle();
  TimePoint last = origin;
  for (const Change& change : changes_) {
    n += std::round((change.middle() - last) / period);
    last = change.middle();
    const double t = Seconds(last - origin).count() - n * period.count();
    count += 1;
    sum_n += n;
    sum_t += t;
    sum_nn += n * n;
    sum_nt += n * t;
    sum_tt += t * t;
  }
  const double spread = sum_nn - sum_n * sum_n / count;
  const double slope = (sum_nt - sum_n * sum_t / count) / spread;
  const double rest = sum_tt - sum_t * sum_t / count - slope * slope * spread;
  const double variance = std::max(rest, 0.0) / std::max(count - 2, 1.0);
  // Polls see a change late by anything up to their interval, which may repeat from update to
  // update: no fit can be surer of the whole span than that.
  const double poll = PollInterval().count();
  return {.value = period + Seconds(slope),
          .sigma = Seconds(std::sqrt(variance / spread + poll * poll / 12 / (n * n)))};
}

std::optional<Estimate> SensorTrace::UpdatePeriod() const {
  const auto guess = estimator_.Estimate();
  if (!guess || changes_.size() < 3) return std::nullopt;
  const Seconds likely = LikelyPeriod(guess->period);
  return FitLattice(FitLattice(likely).value);
}

std::vector<SensorReading> SensorTrace::Readings(Seconds period) const {
  std::vector<SensorReading> readings;
  const Seconds certain = kCertaintyRatio * PollInterval();
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    if (change.seen - change.after > certain) continue;
    readings.push_back({change.middle(), change.value});
    if (i + 1 == changes_.size()) continue;
    const Seconds interval = changes_[i + 1].middle() - change.middle();
    const long steps = std::lround(interval / period);
    const Seconds step = interval / static_cast<double>(std::max(steps, 1L));
    for (long unseen = 1; unseen < steps; ++unseen)
      readings.push_back({change.middle() + step * static_cast<double>(unseen), change.value});
  }
  return readings;
}

}  // namespace zeus::calibration
