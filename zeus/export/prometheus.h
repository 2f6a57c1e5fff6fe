#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/units.h"
#include "zeus/export/sample.h"
#include "zeus/metrics/metric.h"
#include "zeus/monitor/measurement.h"

namespace zeus {

// Adds the readings of all devices. Energies are the totals of the recording, so nothing is lost
// between two scrapes however far apart they are.
void AddSample(const Sample& sample, MetricSet& metrics);

// Adds the version of this program and its CPU time.
void AddProcess(std::string_view version, Seconds cpu_time, MetricSet& metrics);

// The CPU time that this process has used.
Seconds ProcessCpuTime();

// Sums of finished windows by name. Thread-safe.
class WindowMetrics {
 public:
  // Names beyond this number are summed as "other": a window name per step must not fill a
  // database.
  explicit WindowMetrics(std::size_t most_names = 200) : most_names_(most_names) {}

  void Observe(const Measurement& measurement);
  void AddTo(MetricSet& metrics) const;

 private:
  struct Series {
    Histogram ours;
    Histogram reference;
  };
  using Key = std::pair<std::string, std::string>;  // The key is window and device.

  const std::size_t most_names_;
  mutable std::mutex mutex_;
  std::set<std::string> names_;  // Guarded by mutex_, like the next member.
  std::map<Key, Series> series_;
};

}  // namespace zeus
