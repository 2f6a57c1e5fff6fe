#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/gpu.h"

namespace zeus {

// How busy one process kept a GPU around one moment.
struct ProcessSample {
  std::int64_t pid = 0;
  WallTime time{};
  double compute = 0;  // Share of the time in which a kernel of it ran, 0 to 1.
};

// A GPU implements this, too, when its driver is a library in this process, which keeps the GPU
// open as long as it is loaded. Thread-safe.
class DriverAccess {
 public:
  virtual ~DriverAccess() = default;

  // Closes what this process has open of the GPU, so that it can be reset or taken out: until
  // TakeBack() every call is answered with kUnavailable and does not reach the driver. Calls to
  // other GPUs of the same driver wait for a moment. kUnavailable when one of them does not return;
  // then nothing has changed.
  virtual Status LetGo() = 0;
  virtual void TakeBack() = 0;

  // The samples after `since` that the driver still has: some seconds. Empty when no process ran.
  virtual Result<std::vector<ProcessSample>> ProcessSamples(WallTime since) = 0;

  // The UUIDs of the parts into which the GPU is divided now, "MIG-…"; empty where it is whole.
  virtual Result<std::vector<std::string>> Partitions() = 0;
};

// Null for a GPU that this process asks by files of the kernel, or does not ask itself.
inline DriverAccess* DriverAccessOf(Gpu& gpu) { return dynamic_cast<DriverAccess*>(&gpu); }

}  // namespace zeus
