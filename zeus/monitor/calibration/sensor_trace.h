#pragma once

#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/device/update_period.h"

namespace zeus::calibration {

// A figure and its standard deviation.
struct Estimate {
  Seconds value{0};
  Seconds sigma{0};
};

// A value that the sensor showed, from the moment on at which it appeared.
struct SensorReading {
  TimePoint time;  // Between the last poll that did not show it and the first that did.
  double value;
};

// The new values that polling a sensor showed, and when they appeared. One owner.
class SensorTrace {
 public:
  // Times must not decrease. Polls that are far apart for once cost precision, not correctness.
  void Add(TimePoint time, double value);

  // How often the sensor shows a new value: the spacing of the lattice that fits the moments of
  // change best. An update whose value was the same as the one before is not seen and no harm.
  // nullopt until three changes were seen.
  std::optional<Estimate> UpdatePeriod() const;

  // All readings, also those that were not seen because the value stayed the same (there are such
  // where changes are several periods apart). Changes whose moment is known much worse than that
  // of most are left out.
  std::vector<SensorReading> Readings(Seconds period) const;

  // Usual time between two polls.
  Seconds PollInterval() const;
  int changes() const { return static_cast<int>(changes_.size()); }

 private:
  struct Change {
    TimePoint after;  // The last poll that showed the old value.
    TimePoint seen;   // The first that showed the new one.
    double value;

    TimePoint middle() const { return after + (seen - after) / 2; }
  };

  Seconds LikelyPeriod(Seconds first_guess) const;
  Estimate FitLattice(Seconds period) const;

  UpdatePeriodEstimator estimator_;
  std::optional<SensorReading> last_poll_;
  std::vector<Change> changes_;
};

}  // namespace zeus::calibration
