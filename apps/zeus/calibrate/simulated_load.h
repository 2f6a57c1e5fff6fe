#pragma once

#include <memory>
#include <optional>

#include "apps/zeus/calibrate/switched_load.h"
#include "zeus/base/clock.h"
#include "zeus/device/gpu.h"

namespace zeus::cli {

// Opens a constant load on a GPU of the simulated node that this process sees. Returns nullptr when
// the GPU does not belong to that node, and kPermissionDenied when another user owns the node.
// `clock` must outlive the load.
Result<std::unique_ptr<SwitchedLoad>> OpenSimulatedLoad(Clock& clock, Gpu& gpu);

}  // namespace zeus::cli
