#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/agreement.h"

namespace zeus {

// Returns the positions of the devices whose energy counts for the cost of a training (Zeus §2.2):
// the GPUs, or all devices of the total if there are no GPUs.
std::vector<std::size_t> CountedDevices(const EnergyMonitor& monitor);

// A GPU that several ranks measure, as when each has a monitor of the whole machine.
struct SharedGpu {
  std::size_t device;  // Position in this rank's monitor.
  int first_rank;      // The first rank that measures it.
};

// Returns the GPUs of this rank that an earlier rank measures, too. All ranks must call it.
Result<std::vector<SharedGpu>> GpusOfEarlierRanks(NodeMonitor& monitor, Collective& collective);

}  // namespace zeus
