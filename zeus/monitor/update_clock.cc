// Every poll that sees a new value brackets an update: it came after the poll before and not after
// this one. With a period p, bracket number n allows the phases between its two ends less n * p,
// and all brackets together leave a room in which the true phase lies. The width of the room is a
// concave function of the period, so its maximum is found by thirds; period and phase are taken
// from its middle. Polls are placed at the expected updates, where they cut the room in two. Once
// the phase is known to a millisecond, any poll between two updates will do, and a pair of polls
// around an update checks for drift now and then.
#include "zeus/monitor/update_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zeus {
namespace {

using namespace std::chrono_literals;

// Timers of a busy machine are not better than this.
constexpr Seconds kTimerSlack = 300us;
// A phase known that well is worth no more polls: 1 ms of a step of 300 W is 0.3 J.
constexpr Seconds kPrecise = 1ms;
constexpr double kGolden = 0.381966;
// Crystals drift by less than the timers' slack in that time.
constexpr double kUpdatesBetweenChecks = 64;

// Standard deviation of a value that is only known to lie in an interval.
Seconds UniformSigma(Seconds width) { return width / std::sqrt(12.0); }

}  // namespace

UpdateClock::UpdateClock(Seconds period, Changes changes)
    : changes_(changes), expected_(period), period_(period), phase_sigma_(UniformSigma(period)) {}

UpdateClock::Instant UpdateClock::Changed(TimePoint before, TimePoint now) {
  // More than one update fits between the polls: only the last one counts, and no phase is learned.
  if (now - before >= period_ && !locked())
    return {.time = now - period_ / 2, .sigma = UniformSigma(period_)};

  const double count = Remember(before, now);
  const TimePoint earliest = std::max(before, now - period_);
  if (!locked())
    return {.time = earliest + (now - earliest) / 2, .sigma = UniformSigma(now - earliest)};
  // Jitter may put the grid's instant just outside of what was seen.
  const TimePoint expected = UpdateInstant(count);
  return {.time = std::clamp(expected, earliest, now), .sigma = SigmaAt(now) + kTimerSlack};
}

double UpdateClock::CountUpdates(TimePoint before, TimePoint now) const {
  if (brackets_.empty()) return 0;
  if (!locked_) {
    const Bracket& last = brackets_.back();
    const Seconds passed =
        (before + (now - before) / 2) - (last.after + (last.until - last.after) / 2);
    return last.count + std::round(passed / period_);
  }
  const double count = phase_count_ + std::floor((now - phase_) / period_);
  // If that one came before the last poll, with or without a change, it is the next one, early.
  const Seconds certain = margin(now);
  const bool next_is_near = now > UpdateInstant(count + 1) - certain;
  const bool past = last_count_ >= count || before > UpdateInstant(count) + certain / 2;
  return past && next_is_near ? count + 1 : count;
}

Seconds UpdateClock::SigmaAt(TimePoint time) const {
  const double span = std::max(brackets_.back().count - brackets_.front().count, 1.0);
  const double since = std::max((time - brackets_.back().until) / period_, 0.0);
  return std::min<Seconds>(phase_sigma_ * (1.0 + 2.0 * since / span), UniformSigma(period_));
}

Seconds UpdateClock::Precise() const { return std::min<Seconds>(kPrecise, period_ / 50); }

Seconds UpdateClock::margin(TimePoint now) const {
  return std::min<Seconds>(3 * SigmaAt(now) + kTimerSlack, period_ / 4);
}

UpdateClock::Appointment UpdateClock::NextPoll(TimePoint now) {
  const auto at = [](TimePoint time) { return Appointment{.earliest = time, .latest = time}; };
  if (!locked_) {
    // A few periods of close watch find the phase of a sensor whose value changes. Golden sections
    // of the period never fall into step with the updates.
    const double wait = changes_ == Changes::kSometimes ? 1.0 / 8
                        : ++polls_unlocked_ < 64        ? 1.0 / 16
                                                        : kGolden;
    return at(now + period_ * wait);
  }
  const Seconds certain = margin(now);
  const double count = phase_count_ + std::floor((now - phase_) / period_);
  const TimePoint last = UpdateInstant(count);
  const TimePoint next = UpdateInstant(count + 1);
  const bool precise = SigmaAt(now) <= Precise();
  const bool check = count - checked_count_ >= kUpdatesBetweenChecks;
  if (precise && !check) return {.earliest = now + 0.4 * period_, .latest = now + 0.9 * period_};
  // Right at an update that may not have shown yet.
  if (last_count_ < count && now < last + certain - kTimerSlack / 2) return at(last + certain);
  if (!precise) return at(next);
  // One poll just before an update and one just after it make sure that nothing has drifted.
  if (now < next - certain - kTimerSlack) return at(next - certain);
  checked_count_ = count + 1;
  return at(next + certain);
}

UpdateClock::Instant UpdateClock::Latest(TimePoint now) const {
  if (!locked()) return {.time = now - period_ / 2, .sigma = UniformSigma(period_)};
  const double count = std::floor((now - phase_) / period_);
  return {.time = phase_ + count * period_, .sigma = SigmaAt(now) + kTimerSlack};
}

// Whether the update came when it was expected and no poll was close enough to it to narrow the
// phase.
bool UpdateClock::TeachesNothing(TimePoint before, TimePoint now, double count) const {
  if (!locked_ || SigmaAt(now) > Precise()) return false;
  const Seconds wide = 4 * margin(now);
  return before + wide < UpdateInstant(count) && UpdateInstant(count) + wide < now;
}

// Wide brackets must not make the narrow ones be forgotten that the phase is known from.
bool UpdateClock::WouldCrowdOut(TimePoint before, TimePoint now, double count) const {
  if (!locked_ || brackets_.size() < kMost || SigmaAt(now) > Precise()) return false;
  const Seconds certain = margin(now);
  const bool expected =
      UpdateInstant(count) > before - certain && UpdateInstant(count) < now + certain;
  return expected && now - before > 4 * certain;
}

double UpdateClock::Remember(TimePoint before, TimePoint now) {
  double count = CountUpdates(before, now);
  if (!brackets_.empty()) {
    const double periods = count - last_count_;
    if (periods < 1) return count;  // This update was seen before.
    // After a silence so long that the count of periods is a guess: start anew.
    if (locked_ && periods > 50 && 3 * SigmaAt(now) > period_ / 2) {
      brackets_.clear();
      locked_ = false;
      count = 0;
    } else {
      AdoptLongerPeriod(periods);
      if (!locked_ && brackets_.size() == 1) count = CountUpdates(before, now);
    }
  }
  last_count_ = count;
  if (TeachesNothing(before, now, count) || WouldCrowdOut(before, now, count)) return count;
  brackets_.push_back({.after = before, .until = now, .count = count});
  if (brackets_.size() > kMost) brackets_.pop_front();
  ++since_fit_;
  const bool tight = now - before < period_ / 4;
  if (phase_sigma_ > Precise() || tight || since_fit_ >= 8) Fit();
  return count;
}

// A counter that shows only every nth expected update has n times the period.
void UpdateClock::AdoptLongerPeriod(double step) {
  constexpr int kEnoughSteps = 7;
  if (step < 2 || changes_ == Changes::kSometimes) {
    long_steps_ = 0;
    return;
  }
  shortest_step_ = long_steps_ == 0 ? step : std::min(shortest_step_, step);
  if (++long_steps_ < kEnoughSteps) return;
  long_steps_ = 0;
  expected_ = period_ * shortest_step_;
  period_ = expected_;
  StartAnew();
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

double UpdateClock::EndOfRoom(double inside, double outside) const {
  for (int i = 0; i < 12; ++i) {
    const double middle = (inside + outside) / 2;
    (RoomFor(middle).width > 0 ? inside : outside) = middle;
  }
  return inside;
}

// The room for the phase is a concave function of the period: its maximum is found by thirds.
void UpdateClock::Fit() {
  since_fit_ = 0;
  locked_ = brackets_.size() >= Enough();
  if (!locked_) return;
  const double span = brackets_.back().count - brackets_.front().count;
  const double reach = span < 2 ? 0.0 : std::min(0.2, 1.0 / span);
  // Sparse changes fit many periods: those near the expected one are enough.
  const double trust = changes_ == Changes::kAlways ? 0.25 : 0.06;
  const double shortest =
      std::max(period_.count() * (1.0 - reach), expected_.count() * (1.0 - trust));
  const double longest =
      std::min(period_.count() * (1.0 + reach), expected_.count() * (1.0 + trust));
  double low = shortest;
  double high = longest;
  for (int i = 0; i < 24; ++i) {
    const double a = low + (high - low) / 3;
    const double b = high - (high - low) / 3;
    if (RoomFor(a).width < RoomFor(b).width) {
      low = a;
    } else {
      high = b;
    }
  }
  double period = span < 2 ? expected_.count() : (low + high) / 2;
  const double width = RoomFor(period).width;
  if (width < -period / 8) {
    StartAnew();
    return;
  }
  double slow = period;
  double fast = period;
  if (width > 0) {
    slow = EndOfRoom(period, longest);
    fast = EndOfRoom(period, shortest);
    // A few brackets allow many periods: then the expected one is the most probable.
    if (expected_.count() > fast && expected_.count() < slow) period = expected_.count();
  }
  const Room room = RoomFor(period);
  period_ = Seconds(period);
  phase_ = brackets_.front().after + Seconds(room.middle) + span * period_;
  phase_count_ = brackets_.back().count;
  // Other periods that the brackets allow put the latest update elsewhere. No room at all: the
  // sensor jitters by about as much as is missing.
  const auto latest = [&](double other) { return RoomFor(other).middle + span * other; };
  const double shift =
      std::max(std::abs(latest(slow) - latest(period)), std::abs(latest(fast) - latest(period)));
  phase_sigma_ =
      width > 0 ? UniformSigma(Seconds(std::hypot(room.width, 2 * shift))) : Seconds(-width / 2);
}

// The last bracket is true whatever was thought about the others.
void UpdateClock::StartAnew() {
  const Bracket last = brackets_.back();
  brackets_.clear();
  brackets_.push_back({.after = last.after, .until = last.until, .count = 0});
  locked_ = false;
  phase_sigma_ = UniformSigma(period_);
  last_count_ = checked_count_ = 0;
  polls_unlocked_ = 0;
}

}  // namespace zeus
