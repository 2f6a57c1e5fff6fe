#include "zeus/daemon/api/knob_timings.h"

#include "zeus/metrics/metric_catalogue.h"

namespace zeus::daemon {

void KnobTimings::CountCall(const std::string& device, Seconds duration) {
  const std::lock_guard lock(mutex_);
  calls_.try_emplace(device, kBounds).first->second.Observe(duration.count());
}

void KnobTimings::CountRestore(Seconds duration) {
  const std::lock_guard lock(mutex_);
  restores_.Observe(duration.count());
}

void KnobTimings::AddTo(MetricSet& set) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [device, histogram] : calls_)
    set.Add(metrics::kDeviceCallDuration, {{"device", device}}, histogram);
  set.Add(metrics::kKnobRestoreDuration, {}, restores_);
}

}  // namespace zeus::daemon
