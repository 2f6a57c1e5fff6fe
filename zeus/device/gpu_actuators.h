#pragma once

#include <memory>

#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knob_actuator.h"

namespace zeus {

// The power limit or a clock of a GPU, which must outlive it. They keep the driver
// loaded (persistence mode) where they may: it forgets its settings when the last client leaves.
// kNotSupported when the GPU has no power limit, kInvalidArgument for the knob of a CPU.
Result<std::unique_ptr<KnobActuator>> MakeActuator(KnobKind kind, Gpu& gpu);

}  // namespace zeus
