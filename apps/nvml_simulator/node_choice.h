#pragma once

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/sim/shared_node.h"

namespace zeus::nvml_simulator {

// Opens the node that this process sees: the one named by ZEUS_SIM_NODE, else the node "default" if
// it runs, else a private one described by ZEUS_SIM ("2xA100"), else returns an error.
Result<sim::SharedNode> ChooseNode(Clock& clock);

}  // namespace zeus::nvml_simulator
