#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/metrics/metric.h"
#include "zeus/monitor/measurement.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::python {

// Upper ends of the buckets of a histogram, by kind of device.
struct EnergyBuckets {
  std::vector<double> gpu;
  std::vector<double> cpu;
  std::vector<double> dram;
};

// What a program's windows used, as metrics with the labels `window` and `index` and the names of
// the reference implementation. A device without a number has no value. Thread-safe.
class MetricBoard {
 public:
  // Names beyond so many are counted together as "other": a name per step must not fill a database.
  static constexpr std::size_t kMostNames = 200;

  void Observe(const std::string& window, const Measurement& measurement,
               const EnergyBuckets& buckets);

  // What a window that is open has used so far, beside what earlier ones of its name did. Totals
  // never decrease, whatever the estimates at the edges do.
  void Update(const std::string& window, const Measurement& so_far);
  void Finish(const std::string& window, const Measurement& measurement);

  // The power of the GPUs at present.
  void ShowPower(const std::string& window, const EnergyMonitor& monitor);

  void AddTo(MetricSet& metrics, const Labels& labels) const;

  // Grows with every change.
  std::size_t version() const;

 private:
  struct Total {
    double finished = 0;
    double shown = 0;
  };
  using Value = std::variant<double, Total, Histogram>;
  using Key = std::tuple<const MetricDescription*, std::string, std::string>;  // Window, index.

  std::string NameOf(const std::string& window);  // With mutex_ held.
  void Count(const std::string& window, const Measurement& measurement, bool finished);

  mutable std::mutex mutex_;
  std::set<std::string> names_;  // Guarded by mutex_, as are the next.
  std::map<Key, Value> series_;
  std::size_t version_ = 0;
};

}  // namespace zeus::python
