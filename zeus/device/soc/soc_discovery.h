#pragma once

#include "zeus/base/result.h"
#include "zeus/device/node.h"

namespace zeus {

// What boards and system-on-chip modules measure: the rails of a Jetson, the sockets of a Grace,
// and Intel's discrete GPUs. On a machine that is none of these nothing is found and nothing is
// reported absent.
Result<Findings> DiscoverSoc(const Surroundings& surroundings);

}  // namespace zeus
