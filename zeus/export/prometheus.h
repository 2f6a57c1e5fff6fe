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

// What the devices show. Energies are the totals of the recording, so nothing is lost between two
// scrapes however far apart they are.
void AddSample(const Sample& sample, MetricSet& metrics);

// What this program is and what it costs: its version and its CPU time.
void AddProcess(std::string_view version, Seconds cpu_time, MetricSet& metrics);

// CPU time of this process so far.
Seconds ProcessCpuTime();

// Finished windows, summed up by name. Thread-safe.
class WindowMetrics {
 public:
  // Names beyond so many are counted together as "other": a name per step must not fill a database.
  explicit WindowMetrics(std::size_t most_names = 200) : most_names_(most_names) {}

  void Observe(const Measurement& measurement);
  void AddTo(MetricSet& metrics) const;

 private:
  struct Series {
    Histogram ours;
    Histogram reference;
  };
  using Key = std::pair<std::string, std::string>;  // Window, device.

  const std::size_t most_names_;
  mutable std::mutex mutex_;
  std::set<std::string> names_;  // Guarded by mutex_, as is the next.
  std::map<Key, Series> series_;
};

}  // namespace zeus
