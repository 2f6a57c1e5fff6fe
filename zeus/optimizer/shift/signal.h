#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

inline constexpr double kJoulesPerKilowattHour = 3.6e6;

// Returns the moment so much later, or the last one there is.
inline WallTime Later(WallTime time, Seconds by) {
  return by < Seconds(WallTime::max() - time)
             ? time + std::chrono::duration_cast<std::chrono::microseconds>(by)
             : WallTime::max();
}

// Power that is drawn between two moments.
struct PowerPiece {
  WallTime from;
  WallTime until;
  Watts power;
};

// The cost of a kilowatt-hour over time, as far as it is known or expected: grams of CO2e or money.
// A step holds until the next one; a time without a step belongs to the step before it. Values may
// be negative. Immutable after ExtendTo(), thread-safe.
class Signal {
 public:
  struct Step {
    WallTime from;
    double value;      // Per kilowatt-hour.
    double sigma = 0;  // One standard deviation of the error of the value.
  };

  // The errors of two moments are correlated: by exp(-distance / kCorrelation). Weather that was
  // forecast wrongly at noon was mostly forecast wrongly at two.
  static constexpr Seconds kCorrelation = std::chrono::hours(6);

  // Steps may come in any order; of two with the same time the later one in the list counts. Steps
  // that are no finite numbers are left out and counted. Returns kInvalidArgument when no step is
  // left, or when none begins before `until`.
  static Result<Signal> Create(std::vector<Step> steps, WallTime until);

  WallTime begin() const { return steps_.front().from; }
  WallTime end() const { return end_; }
  // From here on values are assumed (see ExtendTo()); end() where none is.
  WallTime known_until() const { return known_until_; }
  std::size_t left_out() const { return left_out_; }
  std::span<const Step> steps() const { return steps_; }

  // Assumes that the last day repeats itself, or where less than a day is known its mean, until
  // `end`. The sigma of an assumed step is the spread of all known values.
  void ExtendTo(WallTime end);

  // Returns the integral of the value over time, in value-seconds. The first step also holds before
  // it begins; nothing is added after end().
  double Integral(WallTime from, WallTime until) const;
  double Mean(WallTime from, WallTime until) const;
  double At(WallTime time) const { return steps_[IndexAt(time)].value; }

  // The grams or the money that this power costs.
  double Cost(std::span<const PowerPiece> pieces) const;
  // The standard error of the difference between what `a` and `b` cost. Where both draw the same
  // power, the error of the forecast does not matter.
  double SigmaOfDifference(std::span<const PowerPiece> a, std::span<const PowerPiece> b) const;

 private:
  Signal(std::vector<Step> steps, WallTime end, std::size_t left_out);
  std::size_t IndexAt(WallTime time) const;
  double IntegralUntil(WallTime time) const;
  WallTime StepEnd(std::size_t index) const;
  void SumUp();
  // Adds the energy of a piece to that of each step.
  void AddEnergy(const PowerPiece& piece, double sign, std::span<double> energy) const;

  std::vector<Step> steps_;     // By time, all different, none from `end_` on.
  std::vector<double> before_;  // The integral from begin() until each step.
  WallTime end_;
  WallTime known_until_;
  std::size_t left_out_ = 0;
};

}  // namespace zeus
