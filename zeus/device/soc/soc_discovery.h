#pragma once

#include "zeus/base/result.h"
#include "zeus/device/node.h"

namespace zeus {

// Finds the sensors of boards and system-on-chip modules: the rails of a Jetson, the sockets of a
// Grace, and Intel's discrete GPUs. On other machines it finds nothing and reports nothing as
// absent.
Result<Findings> DiscoverSoc(const Surroundings& surroundings);

}  // namespace zeus
