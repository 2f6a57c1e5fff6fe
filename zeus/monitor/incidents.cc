#include "zeus/monitor/incidents.h"

namespace zeus {

void Incidents::Add(TimePoint since, TimePoint time, MeasurementFlag flag) {
  all_.Set(flag);
  // What goes on and on is one incident: it must not push out the others.
  if (!recent_.empty() && recent_.back().flag == flag && recent_.back().time >= since) {
    recent_.back().time = time;
    return;
  }
  if (recent_.size() == 512) {
    forgotten_.Set(recent_.front().flag);
    forgotten_until_ = recent_.front().time;
    recent_.pop_front();
  }
  recent_.push_back({.since = since, .time = time, .flag = flag});
}

MeasurementFlags Incidents::Between(TimePoint begin, TimePoint end) const {
  MeasurementFlags flags;
  if (!forgotten_.empty() && begin <= forgotten_until_) flags = forgotten_;
  for (auto incident = recent_.rbegin(); incident != recent_.rend(); ++incident) {
    if (incident->time < begin) break;
    if (incident->since <= end) flags.Set(incident->flag);
  }
  return flags;
}

}  // namespace zeus
