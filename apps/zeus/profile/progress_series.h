#pragma once

#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus::cli {

// How fast a program made its steps during a stretch of time.
struct StepRate {
  double steps;  // In the whole stretch, not a whole number: the edges are between steps.
  Seconds time_per_step;
  Seconds sigma;  // One standard deviation.
};

// When the count of a program's steps changed, and the rates that follow from it. One owner.
class ProgressSeries {
 public:
  // `stamp_sigma`: how late or early a change may be noticed, one standard deviation.
  explicit ProgressSeries(Seconds stamp_sigma) : stamp_sigma_(stamp_sigma) {}

  // The program says it has made `count` steps. A count that is lower than the last one begins
  // again: the next epoch. Times do not decrease.
  void Observe(TimePoint when, double count);

  bool empty() const { return changes_.empty() && !last_count_; }

  // From the changes inside the stretch alone, so that nothing that happened at another setting
  // of the knob has a part in it: the line through the first and the last one gives the count at
  // the edges. nullopt with fewer than two changes.
  //
  // Sigma is that of the sum of the intervals between changes, from their scatter. A single
  // interval tells no scatter: then it is as uncertain as a count that is known to one interval.
  std::optional<StepRate> Between(TimePoint begin, TimePoint end) const;

  // Gives memory back.
  void ForgetBefore(TimePoint when);

 private:
  struct Change {
    TimePoint when;
    double total;  // Over all epochs.
  };

  Seconds stamp_sigma_;
  std::optional<double> last_count_;
  double total_ = 0;
  std::vector<Change> changes_;  // Ascending in both.
};

}  // namespace zeus::cli
