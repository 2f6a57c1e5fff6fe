#pragma once

#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {

// A load on one GPU that can be switched on and off at once. It starts idle and is removed by its
// destructor. Not thread-safe.
class SwitchedLoad {
 public:
  virtual ~SwitchedLoad() = default;

  virtual Status Switch(calibration::LoadState state) = 0;
};

// Opens a constant load on a GPU of the simulated node that this process sees. Returns nullptr when
// the GPU does not belong to that node, and kPermissionDenied when another user owns the node.
// `clock` must outlive the load.
Result<std::unique_ptr<SwitchedLoad>> OpenSimulatedLoad(Clock& clock, Gpu& gpu);

// A user's command that keeps a GPU busy when told so (docs/calibration.md): it sees only that GPU,
// prints "ready", then reads "1" (be busy) and "0" (be idle) line by line and ends when its input
// does. Runs in a process group of its own, which is ended with the load. kUnavailable when it ends
// early or is not ready in time. `clock` must outlive it.
Result<std::unique_ptr<SwitchedLoad>> StartCommandLoad(Clock& clock, const std::string& command,
                                                       const Gpu& gpu, SignalWatch& signals);

}  // namespace zeus::cli
