#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "zeus/base/units.h"
#include "zeus/metrics/metric.h"

namespace zeus::daemon {

// How long drivers and the return of knobs take, for metrics. Thread-safe.
class KnobTimings {
 public:
  void CountCall(const std::string& device, Seconds duration);
  void CountRestore(Seconds duration);
  void AddTo(MetricSet& metrics) const;

 private:
  static constexpr std::array kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                         0.025,  0.05,    0.1,    0.25,  1.0,    10.0};

  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::map<std::string, Histogram> calls_{};  // By device.
  Histogram restores_{kBounds};
};

}  // namespace zeus::daemon
