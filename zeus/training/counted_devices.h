#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/agreement.h"

namespace zeus {

// Positions of the devices whose energy the cost of a training is about (Zeus §2.2): its GPUs, or
// everything that is measured where there are none.
std::vector<std::size_t> CountedDevices(const EnergyMonitor& monitor);

// A GPU that several ranks measure, as when each has a monitor of the whole machine.
struct SharedGpu {
  std::size_t device;  // Of this rank's monitor.
  int first_rank;      // That measures it.
};

// The GPUs of this rank that a rank before it measures, too: whose they are. All ranks call it.
Result<std::vector<SharedGpu>> GpusOfEarlierRanks(NodeMonitor& monitor, Collective& collective);

}  // namespace zeus
