#pragma once

#include <span>

#include "zeus/base/units.h"

namespace zeus {

// How long the next run takes, as far as earlier runs tell. Immutable.
class DurationBelief {
 public:
  // From the durations of earlier runs, at least one. Few of them say little about the spread, for
  // which kAssumedSpread stands until there are more.
  static DurationBelief FromRuns(std::span<const Seconds> runs);
  // From what somebody says. A sigma of 0 is taken as said: exactly this long.
  static DurationBelief Of(Seconds mean, Seconds sigma);

  static constexpr double kAssumedSpread = 0.1;  // Relative.

  Seconds mean() const { return mean_; }
  Seconds sigma() const { return sigma_; }
  // The run is over by then with a probability of 95 %,
  Seconds q95() const { return q95_; }
  // and by then with one of 99.99 %: later is a missed deadline in one of ten thousand runs.
  Seconds longest() const { return longest_; }

  // The same belief about a part of the run.
  DurationBelief Times(double share) const;

 private:
  DurationBelief(Seconds mean, Seconds sigma, double degrees);

  Seconds mean_;
  Seconds sigma_;  // From the spread of runs, and how well their mean is known.
  Seconds q95_;
  Seconds longest_;
};

}  // namespace zeus
