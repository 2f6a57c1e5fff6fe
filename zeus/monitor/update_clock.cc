#include "zeus/monitor/update_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zeus {
namespace {

// Of a value known only to lie in an interval.
Seconds UniformSigma(Seconds width) { return width / std::sqrt(12.0); }

}  // namespace

UpdateClock::UpdateClock(Seconds period)
    : expected_(period), period_(period), phase_sigma_(UniformSigma(period)) {}

UpdateClock::Instant UpdateClock::Changed(TimePoint before, TimePoint now) {
  // More than one update fits between the polls: only the last one counts, and no phase is learned.
  if (now - before >= period_ && !locked())
    return {.time = now - period_ / 2, .sigma = UniformSigma(period_)};

  Remember(before, now);
  const TimePoint earliest = std::max(before, now - period_);
  if (!locked())
    return {.time = earliest + (now - earliest) / 2, .sigma = UniformSigma(now - earliest)};
  const Instant latest = Latest(now);
  // Jitter may put the grid's instant just outside of what was seen.
  return {.time = std::clamp(latest.time, earliest, now), .sigma = latest.sigma};
}

UpdateClock::Instant UpdateClock::Latest(TimePoint now) const {
  if (!locked()) return {.time = now - period_ / 2, .sigma = UniformSigma(period_)};
  const double count = std::floor((now - phase_) / period_);
  return {.time = phase_ + count * period_, .sigma = phase_sigma_};
}

void UpdateClock::Remember(TimePoint before, TimePoint now) {
  double count = 0;
  if (!brackets_.empty()) {
    const Bracket& last = brackets_.back();
    const Seconds passed =
        (before + (now - before) / 2) - (last.after + (last.until - last.after) / 2);
    const double periods = std::round(passed / period_);
    if (periods < 1) return;  // Seen twice: a poll right at the update.
    count = last.count + periods;
    // After a long silence the count of periods is a guess: start anew.
    if (periods > 50) brackets_.clear();
  }
  brackets_.push_back({.after = before, .until = now, .count = count});
  if (brackets_.size() > kMost) brackets_.pop_front();
  AdoptLongerPeriod();
  ++since_fit_;
  // The first fits matter most; later ones only follow the drift of two crystals.
  if (brackets_.size() < 16 || since_fit_ >= 8) Fit();
}

void UpdateClock::AdoptLongerPeriod() {
  if (brackets_.size() < 8) return;
  double shortest = std::numeric_limits<double>::infinity();
  for (std::size_t i = brackets_.size() - 7; i < brackets_.size(); ++i)
    shortest = std::min(shortest, brackets_[i].count - brackets_[i - 1].count);
  if (shortest < 2) return;
  expected_ *= shortest;
  period_ = expected_;
  const Bracket last = brackets_.back();
  brackets_.clear();
  brackets_.push_back({.after = last.after, .until = last.until, .count = 0});
}

UpdateClock::Room UpdateClock::RoomFor(double period) const {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  const TimePoint origin = brackets_.front().after;
  for (const Bracket& bracket : brackets_) {
    const double shift = (bracket.count - brackets_.front().count) * period;
    low = std::max(low, (bracket.after - origin).count() - shift);
    high = std::min(high, (bracket.until - origin).count() - shift);
  }
  return {.width = high - low, .middle = (high + low) / 2};
}

// The room for the phase is a concave function of the period: its maximum is found by thirds.
void UpdateClock::Fit() {
  since_fit_ = 0;
  if (!locked()) return;
  const double span = brackets_.back().count - brackets_.front().count;
  const double reach = std::min(0.2, 1.0 / std::max(span, 1.0));
  double low = period_.count() * (1.0 - reach);
  double high = period_.count() * (1.0 + reach);
  for (int i = 0; i < 36; ++i) {
    const double a = low + (high - low) / 3;
    const double b = high - (high - low) / 3;
    if (RoomFor(a).width < RoomFor(b).width) {
      low = a;
    } else {
      high = b;
    }
  }
  const double period = (low + high) / 2;
  const Room room = RoomFor(period);
  period_ = Seconds(period);
  phase_ = brackets_.front().after + Seconds(room.middle) +
           (brackets_.back().count - brackets_.front().count) * period_;
  // No room at all: the sensor jitters by about as much as is missing.
  phase_sigma_ = Seconds(std::abs(room.width)) / (room.width > 0 ? std::sqrt(12.0) : 2.0);
}

}  // namespace zeus
