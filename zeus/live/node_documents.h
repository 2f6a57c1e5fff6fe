#pragma once

#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/live/node_devices.h"
#include "zeus/monitor/node_monitor.h"

// The documents of a node that zeusd and `zeus monitor --serve` answer alike (docs/formats.md).
namespace zeus::live {

// The lasting facts about a device, and its limit, as an object of GET /v1/node.
Json DescribeGpu(const NodeDevice& device, const EnergyMonitor& monitor);
Json DescribeCpu(const NodeDevice& device);
// {"version", "host", "absent"}: the rest of GET /v1/node.
Json DescribeNode(const Node& node);

// GET /v1/energy: the energy of devices between two moments of the monotonic clock. `until` may lie
// in the future. kInvalidArgument when `since` does not come first.
struct EnergyRequest {
  std::vector<const NodeDevice*> devices{};
  double since = 0;
  double until = 0;
};
Result<Json> EnergyDocument(EnergyMonitor& monitor, const EnergyRequest& request);

}  // namespace zeus::live
