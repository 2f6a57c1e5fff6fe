#include "zeus/monitor/incidents.h"

namespace zeus {

void Incidents::Add(TimePoint time, MeasurementFlag flag) {
  all_.Set(flag);
  if (recent_.size() == 512) {
    forgotten_.Set(recent_.front().flag);
    forgotten_until_ = recent_.front().time;
    recent_.pop_front();
  }
  recent_.push_back({.time = time, .flag = flag});
}

MeasurementFlags Incidents::Between(TimePoint begin, TimePoint end) const {
  MeasurementFlags flags;
  if (!forgotten_.empty() && begin <= forgotten_until_) flags = forgotten_;
  for (auto incident = recent_.rbegin(); incident != recent_.rend(); ++incident) {
    if (incident->time < begin) break;
    if (incident->time <= end) flags.Set(incident->flag);
  }
  return flags;
}

}  // namespace zeus
