#include "python/bindings/metric_board.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "zeus/metrics/metric_catalogue.h"
#include "zeus/export/sample.h"

namespace zeus::python {
namespace {

// The metrics of a kind of device; nothing for rails, which the reference does not know.
struct DeviceMetrics {
  std::string_view kind;
  const MetricDescription* histogram;
  const MetricDescription* counter;
  std::vector<double> EnergyBuckets::*buckets;
};
constexpr std::array kDeviceMetrics = {
    DeviceMetrics{"gpu", &metrics::kReferenceGpuHistogram, &metrics::kReferenceGpuCounter,
                  &EnergyBuckets::gpu},
    DeviceMetrics{"cpu", &metrics::kReferenceCpuHistogram, &metrics::kReferenceCpuCounter,
                  &EnergyBuckets::cpu},
    DeviceMetrics{"dram", &metrics::kReferenceDramHistogram, &metrics::kReferenceDramCounter,
                  &EnergyBuckets::dram},
};

// Calls `use` with the metrics, the index and the joules of every device that has them.
template <class Use>
void ForEachEnergy(const Measurement& measurement, Use use) {
  for (const DeviceMeasurement& device : measurement.devices) {
    const DeviceIdentity identity{.name = device.device, .model = {}, .uuid = {}};
    const auto metric = std::ranges::find(kDeviceMetrics, identity.kind(), &DeviceMetrics::kind);
    if (metric == kDeviceMetrics.end() || !device.energy.ok()) continue;
    const double joules = device.energy.value().energy.value();
    if (std::isfinite(joules)) use(*metric, std::string(identity.index()), joules);
  }
}

}  // namespace

std::string MetricBoard::NameOf(const std::string& window) {
  if (names_.contains(window)) return window;
  if (names_.size() >= kMostNames) return "other";
  names_.insert(window);
  return window;
}

void MetricBoard::Observe(const std::string& window, const Measurement& measurement,
                          const EnergyBuckets& buckets) {
  const std::lock_guard lock(mutex_);
  const std::string name = NameOf(window);
  ForEachEnergy(
      measurement, [&](const DeviceMetrics& metric, const std::string& index, double joules) {
        const auto [entry, added] = series_.try_emplace(
            Key(metric.histogram, name, index), Histogram(std::span(buckets.*metric.buckets)));
        std::get<Histogram>(entry->second).Observe(joules);
      });
  ++version_;
}

void MetricBoard::Count(const std::string& window, const Measurement& measurement, bool finished) {
  const std::lock_guard lock(mutex_);
  const std::string name = NameOf(window);
  ForEachEnergy(
      measurement, [&](const DeviceMetrics& metric, const std::string& index, double joules) {
        const auto entry = series_.try_emplace(Key(metric.counter, name, index), Total()).first;
        Total& total = std::get<Total>(entry->second);
        total.shown = std::max(total.shown, total.finished + joules);
        if (finished) total.finished += joules;
      });
  ++version_;
}

void MetricBoard::Update(const std::string& window, const Measurement& so_far) {
  Count(window, so_far, false);
}

void MetricBoard::Finish(const std::string& window, const Measurement& measurement) {
  Count(window, measurement, true);
}

void MetricBoard::ShowPower(const std::string& window, const EnergyMonitor& monitor) {
  const std::lock_guard lock(mutex_);
  const std::string name = NameOf(window);
  for (std::size_t i = 0; i < monitor.device_count(); ++i) {
    const DeviceIdentity identity{.name = monitor.device_name(i), .model = {}, .uuid = {}};
    if (identity.kind() != "gpu") continue;
    const Key key(&metrics::kReferenceGpuPower, name, std::string(identity.index()));
    const auto power = monitor.Now(i).power;
    if (power.ok()) {
      series_.insert_or_assign(key, power.value().value());
    } else {
      series_.erase(key);  // The last value of a GPU that is lost would look like its present one.
    }
  }
  ++version_;
}

void MetricBoard::AddTo(MetricSet& metrics, const Labels& labels) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, value] : series_) {
    const auto& [metric, window, index] = key;
    Labels all = {{"window", window}, {"index", index}};
    all.insert(all.end(), labels.begin(), labels.end());
    if (const auto* histogram = std::get_if<Histogram>(&value)) {
      metrics.Add(*metric, all, *histogram);
    } else if (const auto* total = std::get_if<Total>(&value)) {
      metrics.Add(*metric, all, total->shown);
    } else {
      metrics.Add(*metric, all, std::get<double>(value));
    }
  }
}

std::size_t MetricBoard::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

}  // namespace zeus::python
