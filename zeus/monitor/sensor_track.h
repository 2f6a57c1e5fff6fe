#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/device/energy_meter.h"
#include "zeus/monitor/energy_curve.h"
#include "zeus/monitor/sensor_profile.h"
#include "zeus/monitor/update_clock.h"

namespace zeus {

// Turns the readings of one device's sensor, polled now and then, into its energy curve: finds the
// updates, undoes the sensor's averaging, and says when it stands still or cannot be read.
// Times of readings do not decrease. One owner.
class SensorTrack {
 public:
  SensorTrack(const SensorProfile& profile, TimePoint begin, const EdgeLog& edges);

  // A reading of the energy counter. `power` is asked for when the counter stands still.
  void ObserveEnergy(TimePoint now, const EnergyReading& reading, std::optional<Watts> power);
  // A reading of a device that has no counter.
  void ObservePower(TimePoint now, Watts power);
  // It could not be read.
  void ObserveFailure(TimePoint now);
  // Gives a first guess of the power, for the time before the counter moves.
  void GuessPower(TimePoint now, Watts power);

  // The device draws no more than this, as its sensor shows it.
  void SetCeiling(Watts ceiling) { curve_.SetCeiling(ceiling); }

  const EnergyCurve& curve() const { return curve_; }

  // When the counter was last seen to move.
  TimePoint moved_at() const { return moved_at_; }
  // The last attempt to read it failed.
  bool failing() const { return failing_since_.has_value(); }

  Seconds update_period() const { return clock_.period(); }
  // When to read next, having read at `now`; `longest` where the sensor does not mind.
  UpdateClock::Appointment NextPoll(TimePoint now, Seconds longest);
  // Where the curve begins is known for good.
  bool rooted() const { return rooted_; }
  // Nothing about the time before this will change.
  TimePoint settled_until() const;

  // Instants of trouble, cumulative: a window has the trouble if the count differs at its edges.
  struct Troubles {
    std::int64_t resets = 0;
    std::int64_t stale = 0;
  };
  const Troubles& troubles() const { return troubles_; }

 private:
  void BeginAt(TimePoint time, Watts power);
  void AddCounterStretch(TimePoint now, Joules growth);
  void AddPowerStretches(UpdateClock::Instant update, Watts power);
  // The energy of the last update period from readings that average over several.
  Watts UndoAveraging(Watts reading, bool one_update_later);
  // Whether the periods' common error could be found, and was taken out.
  bool CorrectGuess();
  std::vector<double> StepsAfter(std::size_t place) const;
  // How far the energy at the end of a period may be off because of the guess.
  Joules GuessDoubt() const;
  void GoOnStale(TimePoint now, std::optional<Watts> power);

  const SensorProfile profile_;
  EnergyCurve curve_;
  UpdateClock clock_;
  TimePoint first_poll_;
  TimePoint last_poll_;
  Watts power_guess_{0};

  // The counter was seen to move, or never will be.
  bool rooted_ = false;
  std::optional<EnergyReading> energy_;  // The last reading of the counter.
  TimePoint moved_at_{};
  // Growth of the counter that is not on the curve yet.
  Joules carried_{0};
  std::optional<Watts> power_;  // The last reading of the power.
  std::deque<Watts> periods_;   // Newest last: the last averaging window, undone.
  std::deque<Watts> readings_;  // The readings of the same updates.
  // Until the load has been steady for a whole averaging window, `periods_` began with a guess that
  // may be off by about as much as the readings moved at first.
  struct Guess {
    Watts low;
    Watts high;
    std::size_t updates = 0;
    // Sums over the periods since, in watts: themselves, their squares, their products with the
    // period before.
    double sum = 0;
    double squares = 0;
    double products = 0;
  };
  std::optional<Guess> guess_;
  std::deque<Watts> undone_;  // Newest last: all periods since the guess, as far as remembered.
  std::optional<TimePoint> failing_since_;
  bool dark_ = false;   // Failing for so long that the curve went on without it.
  bool stale_ = false;  // The curve went on although the counter stood still.
  Troubles troubles_;
};

}  // namespace zeus
