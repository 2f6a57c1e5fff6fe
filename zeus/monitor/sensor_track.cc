#include "zeus/monitor/sensor_track.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace zeus {
namespace {

using namespace std::chrono_literals;

// Sensors faster than this are fresh whenever they are read: there is nothing to find out.
constexpr Seconds kFresh = 5ms;

// A working counter moves at every update: the device draws power even when idle.
Seconds StaleAfter(Seconds period) { return std::max<Seconds>(10 * period, 1s); }

}  // namespace

SensorTrack::SensorTrack(const SensorProfile& profile, TimePoint begin, const EdgeLog& edges)
    : profile_(profile),
      curve_(edges),
      clock_(profile.counter_period),
      first_poll_(begin),
      last_poll_(begin) {}

void SensorTrack::GuessPower(TimePoint now, Watts power) {
  power_guess_ = power;
  if (curve_.started()) return;
  first_poll_ = now;
  BeginAt(first_poll_, power);
}

void SensorTrack::BeginAt(TimePoint time, Watts power) { curve_.Start(time, power); }

TimePoint SensorTrack::settled_until() const {
  return rooted_ ? curve_.settled_until() : TimePoint(Seconds(-1e300));
}

UpdateClock::Appointment SensorTrack::NextPoll(TimePoint now, Seconds longest) {
  if (clock_.period() < kFresh) return {.earliest = now + longest / 2, .latest = now + longest};
  UpdateClock::Appointment next = clock_.NextPoll(now);
  next.latest = std::max<TimePoint>(next.latest, now + 100us);
  return next;
}

void SensorTrack::ObserveEnergy(TimePoint now, const EnergyReading& reading,
                                std::optional<Watts> power) {
  // A read that failed now and then loses nothing: the counter went on counting.
  const bool was_dark = std::exchange(dark_, false);
  failing_since_.reset();
  const bool restarted =
      energy_ && (reading.epoch != energy_->epoch || reading.total < energy_->total);
  if (restarted) ++troubles_.resets;
  if (!energy_ && !curve_.started()) first_poll_ = now;
  if (!energy_ || was_dark) {
    // What was used meanwhile cannot be placed in time: the curve goes on from here.
    const bool fresh = clock_.period() < kFresh;
    if (!curve_.started()) BeginAt(fresh ? now - clock_.period() / 2 : now, power_guess_);
    if (fresh) rooted_ = true;
    moved_at_ = now;
  } else if (restarted || reading.total > energy_->total) {
    AddCounterStretch(now, std::max(reading.total - energy_->total, Joules(0)));
    moved_at_ = now;
  } else if (now - moved_at_ > StaleAfter(clock_.period())) {
    GoOnStale(now, power);
  }
  energy_ = reading;
  last_poll_ = now;
}

void SensorTrack::AddCounterStretch(TimePoint now, Joules growth) {
  UpdateClock::Instant update = clock_.Changed(last_poll_, now);
  update.time -= profile_.counter_delay;  // When it was true, not when it showed.
  if (!rooted_) {
    rooted_ = true;
    // The energy since the update before the first reading, which came one period earlier.
    const TimePoint before = std::min(update.time - clock_.period(), first_poll_);
    if (clock_.period() >= kFresh) BeginAt(before, power_guess_);
  }
  const Seconds length = update.time - curve_.end();
  carried_ += growth;
  if (std::exchange(stale_, false)) {
    // What it counted while it stood still, if anything, cannot be placed in time.
    carried_ = Joules(0);
    if (length > Seconds(0))
      curve_.Add({.begin = curve_.end(), .end = update.time, .power = curve_.power()});
    return;
  }
  // Two changes right after one another: the second belongs to the stretch that begins here.
  if (length < 0.2 * clock_.period()) return;
  curve_.Add({.begin = curve_.end(),
              .end = update.time,
              .power = carried_ / length,
              .counted = true,
              .end_sigma = update.sigma});
  carried_ = Joules(0);
}

// The counter stands still. The power reading stands in for it where there is one.
void SensorTrack::GoOnStale(TimePoint now, std::optional<Watts> power) {
  ++troubles_.stale;
  stale_ = true;
  rooted_ = true;
  if (!curve_.started()) BeginAt(first_poll_, power.value_or(Watts(0)));
  const TimePoint begin = curve_.end();
  if (now <= begin) return;
  if (!power) {
    curve_.Add({.begin = begin, .end = now, .power = Watts(0), .kind = Stretch::Kind::kDark});
    return;
  }
  curve_.Add({.begin = begin, .end = now, .power = *power, .kind = Stretch::Kind::kObserved});
}

void SensorTrack::ObservePower(TimePoint now, Watts power) {
  failing_since_.reset();
  dark_ = false;
  if (!power_) {
    clock_ = UpdateClock(profile_.power_period, UpdateClock::Changes::kSometimes);
    BeginAt(now - clock_.period(), power);
    rooted_ = true;
  }
  const bool changed = power_ && power != *power_;
  UpdateClock::Instant update{};
  if (changed) {
    update = clock_.Changed(last_poll_, now);
  } else {
    // Just after an update that is not certain to have come yet, the reading may be the old one.
    // Without a phase, all that is certain is that the update before is less than a period old.
    update = clock_.locked() ? clock_.Latest(now - clock_.margin(now) / 2)
                             : UpdateClock::Instant{.time = now - clock_.period(), .sigma{}};
  }
  update.time -= profile_.power_delay;  // When it was true, not when it showed.
  // The first reading belongs to an update before the first poll.
  // Without a phase, a period that passed counts as an update.
  const Seconds fresh = clock_.period() * (clock_.locked() || changed ? 0.3 : 0.99);
  if (update.time - curve_.end() > fresh) AddPowerStretches(update, power);
  power_ = power;
  last_poll_ = now;
}

void SensorTrack::AddPowerStretches(UpdateClock::Instant update, Watts power) {
  const Seconds period = clock_.period();
  const Seconds window = profile_.power_window;
  // Up to one period before this update the reading before holds.
  if (power_ && update.time - curve_.end() > 1.05 * period && window > 0.9 * period)
    curve_.Add({.begin = curve_.end(), .end = update.time - period, .power = *power_});
  const TimePoint begin = curve_.end();
  const bool one_update_later = update.time - begin < 1.5 * period;
  Stretch seen{.begin = begin, .end = update.time, .power = power, .end_sigma = update.sigma};
  if (window > 1.5 * period) {
    seen.power = UndoAveraging(power, one_update_later);
    // A wrong guess at the start comes back once per window, and never adds up.
    if (guess_) seen.end_doubt = (guess_->high - guess_->low) * window / 36;
  } else if (window < 0.9 * period || !one_update_later) {
    // Only the end of the time since the last update was looked at.
    seen.begin = std::max(begin, update.time - std::min(window, period));
    if (seen.begin > begin)
      curve_.Add({.begin = begin, .end = seen.begin, .power = power, .kind = Stretch::Kind::kGap});
  }
  curve_.Add(seen);
}

Watts SensorTrack::UndoAveraging(Watts reading, bool one_update_later) {
  const auto count =
      static_cast<std::size_t>(std::lround(profile_.power_window / profile_.power_period));
  const auto steady = [&] {
    return std::ranges::all_of(readings_, [&](Watts past) {
      return std::abs((past - reading).value()) < 1e-3 * reading.value();
    });
  };
  readings_.push_back(reading);
  if (readings_.size() > count) readings_.pop_front();
  // When the average has not moved for its whole length the power has not either; also the best
  // guess after a missed update and at the start.
  const bool missed = periods_.size() < count || !one_update_later;
  const bool known = readings_.size() == count && steady();
  if (missed || known) {
    periods_.assign(count, reading);
    // An average that moved while nobody looked: one period may have moved by the whole window.
    const Watts before = power_.value_or(reading);
    const Watts moved = (reading - before) * static_cast<double>(count);
    guess_ = known ? std::nullopt
                   : std::optional(Guess{.low = std::min(before, before + moved),
                                         .high = std::max(before, before + moved)});
    return reading;
  }
  if (guess_ && ++guess_->updates < 2 * count) {
    guess_->low = std::min(guess_->low, reading);
    guess_->high = std::max(guess_->high, reading);
  }
  // average * count = the new period + the count - 1 periods before it.
  const Watts others = std::accumulate(periods_.begin() + 1, periods_.end(), Watts(0));
  const Watts newest = std::max(reading * static_cast<double>(count) - others, Watts(0));
  periods_.pop_front();
  periods_.push_back(newest);
  return newest;
}

void SensorTrack::ObserveFailure(TimePoint now) {
  if (!failing_since_) failing_since_ = now;
  if (now - *failing_since_ < 3 * clock_.period() || !curve_.started()) return;
  rooted_ = true;
  dark_ = true;
  if (now > curve_.end())
    curve_.Add(
        {.begin = curve_.end(), .end = now, .power = Watts(0), .kind = Stretch::Kind::kDark});
  periods_.clear();
  last_poll_ = now;
}

}  // namespace zeus
