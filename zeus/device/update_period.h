#pragma once

#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/device/energy_meter.h"

namespace zeus {

// How often a sensor shows a new value, as seen by polling it.
struct UpdatePeriod {
  Seconds period;
  Seconds error;  // A change is noticed up to one poll late, at both ends of an interval.
  int updates;    // Number of changes that were seen.
};

// Estimates the update period of one sensor from polled values. One owner.
class UpdatePeriodEstimator {
 public:
  // Times must not decrease.
  void Add(TimePoint time, double value);

  // nullopt until two changes were seen: one interval needs two ends.
  std::optional<UpdatePeriod> Estimate() const;

 private:
  struct Change {
    TimePoint seen;
    Seconds uncertainty;  // Since the poll before.
  };

  std::optional<double> value_;
  TimePoint last_poll_{};
  std::vector<Change> changes_;
};

// Polls all meters together for `duration` and estimates each one's period, from its energy
// counter or, where it has none, from its power. Entry i belongs to meters[i].
std::vector<std::optional<UpdatePeriod>> MeasureUpdatePeriods(
    Clock& clock, const std::vector<EnergyMeter*>& meters, Seconds duration);

}  // namespace zeus
