#pragma once

#include <deque>

#include "zeus/base/clock.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

// What happened to a device and when, to flag the windows that it happened in. Bounded: of the
// oldest only remains that there were some. One owner.
class Incidents {
 public:
  // Some time after `since` and not after `time`, which does not decrease.
  void Add(TimePoint since, TimePoint time, MeasurementFlag flag);
  MeasurementFlags Between(TimePoint begin, TimePoint end) const;
  MeasurementFlags All() const { return all_; }

 private:
  struct Incident {
    TimePoint since;
    TimePoint time;
    MeasurementFlag flag;
  };
  std::deque<Incident> recent_;
  MeasurementFlags forgotten_;
  TimePoint forgotten_until_{};
  MeasurementFlags all_;
};

}  // namespace zeus
