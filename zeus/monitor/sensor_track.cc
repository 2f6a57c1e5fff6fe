// A counter is simple: its growth between two updates is the energy of that stretch. A power
// reading is a mean over the averaging window of the sensor, which may span several updates. Then
// the new period is the average times the number of periods, less the periods before it
// (UndoAveraging), which needs a guess of the first window; errors of that guess come back once per
// window, and are corrected when they show (CorrectGuess). A counter that stands still while the
// device draws power is replaced by the power reading (GoOnStale).
#include "zeus/monitor/sensor_track.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace zeus {
namespace {

using namespace std::chrono_literals;

// Sensors faster than this are fresh whenever they are read: there is nothing to find out.
constexpr Seconds kFresh = 5ms;

// Averaging windows that are remembered to find the error of a guess.
constexpr std::size_t kGuessMemory = 8;
// Differences between periods that are the same, in watts: readings are exact to a milliwatt, and
// undoing an average makes ten of it.
constexpr double kSameStep = 0.1;

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The step that most of the windows agree on.
std::optional<double> CommonStep(std::vector<double> steps) {
  std::ranges::sort(steps);
  std::size_t most = 0;
  double common = 0;
  for (std::size_t first = 0, last = 0; last < steps.size(); ++last) {
    while (steps[last] - steps[first] > kSameStep) ++first;
    if (last - first + 1 <= most) continue;
    most = last - first + 1;
    common = (steps[first] + steps[last]) / 2;
  }
  const auto others = std::ranges::count_if(
      steps, [&](double step) { return std::abs(step - common) > kSameStep; });
  const bool majority = static_cast<std::size_t>(others) < most;
  if (most < 2 || !(majority || most >= 3)) return std::nullopt;
  return common;
}

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
    // Energy used since the last reading cannot be placed in time: the curve goes on from here.
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
    // Energy that the counter added while it stood still, if any, cannot be placed in time.
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
    if (guess_) seen.end_doubt = GuessDoubt();
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
      return std::abs((past - reading).value()) < 2e-4 * reading.value();
    });
  };
  readings_.push_back(reading);
  // A burst of work stays in the average for as many updates as that is long, and moves it twice.
  const std::size_t unmoved = count + 2;
  if (readings_.size() > unmoved) readings_.pop_front();
  // When the average has not moved for longer than it reaches the power has not either; also the
  // best guess after a missed update and at the start.
  const bool missed = periods_.size() < count || !one_update_later;
  const bool known = readings_.size() == unmoved && steady();
  if (missed || known) {
    periods_.assign(count, reading);
    undone_.clear();
    // The average moved between two polls that were far apart: one period may have moved by the
    // whole window.
    const Watts before = power_.value_or(reading);
    const Watts moved = (reading - before) * static_cast<double>(count);
    guess_ = known ? std::nullopt
                   : std::optional(Guess{.low = std::min(before, before + moved),
                                         .high = std::max(before, before + moved)});
    return reading;
  }
  if (guess_ && guess_->updates++ < 2 * count) {
    guess_->low = std::min(guess_->low, reading);
    guess_->high = std::max(guess_->high, reading);
  }
  // average * count = the new period + the count - 1 periods before it.
  const Watts others = std::accumulate(periods_.begin() + 1, periods_.end(), Watts(0));
  periods_.pop_front();
  periods_.push_back(reading * static_cast<double>(count) - others);
  if (!guess_) return std::max(periods_.back(), Watts(0));
  guess_->sum += periods_.back().value();
  guess_->squares += periods_.back().value() * periods_.back().value();
  guess_->products += periods_.back().value() * periods_[count - 2].value();
  if (periods_.back() < Watts(0)) {
    // There is no negative power: the guess was too low here, and too high elsewhere.
    const Watts excess = periods_.back() / static_cast<double>(count - 1);
    for (Watts& period : periods_) period += excess;
    periods_.back() = Watts(0);
    undone_.clear();
  } else {
    undone_.push_back(periods_.back());
    if (undone_.size() > kGuessMemory * count) undone_.pop_front();
    // Over a whole averaging window the errors add up to nothing.
    if (guess_->updates % count == 0 && CorrectGuess()) {
      guess_.reset();
      undone_.clear();
    }
  }
  return std::max(periods_.back(), Watts(0));
}

// Differences between the period that lies `place` after the begin of the last averaging window and
// the one after it, in that window and in those before.
std::vector<double> SensorTrack::StepsAfter(std::size_t place) const {
  const std::size_t count = periods_.size();
  std::vector<double> steps;
  for (std::size_t next = undone_.size() - count + place + 1;; next -= count) {
    steps.push_back((undone_[next] - undone_[next - 1]).value());
    if (next < count + 1) return steps;
  }
}

Joules SensorTrack::GuessDoubt() const {
  const Seconds period = profile_.power_period;
  const Joules least = (guess_->high - guess_->low) * profile_.power_window / 36;
  const std::size_t count = periods_.size();
  if (undone_.size() < 2 * count + 1) {
    // The errors of the periods are about as large as the periods differ, and so is their part in
    // the differences that show. They add up to nothing over an averaging window.
    const double updates = static_cast<double>(std::max<std::size_t>(guess_->updates, 1));
    const double mean = guess_->sum / updates;
    const double variance = std::max(1e-9, guess_->squares / updates - mean * mean);
    // Neighbours that are alike have errors that are alike: these add up to more.
    const double alike =
        std::clamp((guess_->products / updates - mean * mean) / variance, 0.0, 0.9);
    const auto periods = static_cast<double>(count);
    const double sum = std::min(std::sqrt(periods / 6 * (1 + alike) / (1 - alike)), periods / 3.5);
    return std::max(least, Watts(std::sqrt(variance / 2)) * period * sum);
  }
  // The pattern that comes back in most windows is the guess's, or the load's own.
  std::vector<double> errors(count, 0.0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    std::vector<double> steps = StepsAfter(i);
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::ranges::nth_element(steps, middle);
    errors[i + 1] = errors[i] + *middle;
  }
  const double mean = Mean(errors);
  std::vector<double> sums;
  for (const double error : errors)
    sums.push_back((sums.empty() ? 0.0 : sums.back()) + error - mean);
  const double middle = Mean(sums);
  double squares = 0;
  for (const double sum : sums) squares += (sum - middle) * (sum - middle);
  return std::max(least, Watts(std::sqrt(squares / static_cast<double>(count))) * period);
}

// The guess has given each period an error that comes back once per averaging window. Mostly a load
// does not change from one period to the next; then the difference that shows is the difference of
// their errors, and it shows again one window later, exactly.
bool SensorTrack::CorrectGuess() {
  const std::size_t count = periods_.size();
  if (undone_.size() < 2 * count + 1) return false;
  std::vector<double> errors(count, 0.0);  // One per period, up to a constant.
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const std::optional<double> common = CommonStep(StepsAfter(i));
    if (!common) return false;
    errors[i + 1] = errors[i] + *common;
  }
  const double mean = Mean(errors);  // The average was right from the start.
  for (std::size_t i = 0; i < count; ++i)
    periods_[i] = std::max(periods_[i] - Watts(errors[i] - mean), Watts(0));
  return true;
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
