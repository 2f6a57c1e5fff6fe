#pragma once

#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/export/sample.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus {

// Takes samples of a monitored node from its recording: no driver call. The node must outlive it.
// Thread-safe.
class NodeSampler {
 public:
  // Reads the range of the power limit of every GPU once.
  explicit NodeSampler(NodeMonitor& node);

  Sample Take() const;

  const std::vector<DeviceIdentity>& devices() const { return identities_; }

 private:
  EnergyMonitor& monitor_;
  const TimePoint start_;
  std::vector<DeviceIdentity> identities_;
  std::vector<std::optional<PowerLimit>> limits_;
};

}  // namespace zeus
