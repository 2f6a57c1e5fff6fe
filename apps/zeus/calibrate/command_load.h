#pragma once

#include <memory>
#include <string>

#include "apps/zeus/calibrate/switched_load.h"
#include "zeus/base/clock.h"
#include "zeus/device/gpu.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {

// A user's command that keeps a GPU busy when told so (docs/calibration.md): it sees only that GPU,
// prints "ready", then reads "1" (be busy) and "0" (be idle) line by line and ends when its input
// does. Runs in a process group of its own, which is ended with the load. kUnavailable when it ends
// early or is not ready in time. `clock` must outlive it.
Result<std::unique_ptr<SwitchedLoad>> StartCommandLoad(Clock& clock, const std::string& command,
                                                       const Gpu& gpu, SignalWatch& signals);

}  // namespace zeus::cli
