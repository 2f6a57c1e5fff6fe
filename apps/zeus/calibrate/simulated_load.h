#pragma once

#include <memory>
#include <optional>

#include "apps/zeus/calibrate/switched_load.h"
#include "zeus/base/clock.h"
#include "zeus/device/gpu.h"

namespace zeus::cli {

// A plain draw on a GPU of the simulated node that this process sees. nullptr when the GPU is of no
// such node; kPermissionDenied when the node is somebody else's. `clock` must outlive it.
Result<std::unique_ptr<SwitchedLoad>> OpenSimulatedLoad(Clock& clock, Gpu& gpu);

}  // namespace zeus::cli
