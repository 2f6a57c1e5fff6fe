#pragma once

#include <memory>

#include "zeus/base/result.h"
#include "zeus/device/cpu_package.h"
#include "zeus/device/knob_actuator.h"

namespace zeus {

// The long-term power limit of a CPU socket, which must outlive it.
Result<std::unique_ptr<KnobActuator>> MakeActuator(CpuPackage& cpu);

}  // namespace zeus
