#pragma once

#include <string>
#include <string_view>

#include "zeus/base/result.h"
#include "zeus/device/sim/fault.h"

namespace zeus::sim {

// "lost", "oob-cap:200W", "slow:50ms": as people name a fault, from now on and certain.
// kInvalidArgument lists what there is.
Result<Fault> ParseFault(std::string_view text);

// All of them, with examples of their values: "lost, reset, …".
std::string KnownFaults();

}  // namespace zeus::sim
