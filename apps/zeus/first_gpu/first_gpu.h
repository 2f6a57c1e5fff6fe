#pragma once

#include <string>

#include "apps/zeus/first_gpu/check.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus::cli {

struct FirstGpuOptions {
  unsigned gpu = 0;
  Seconds duration{10};  // Time of each check that watches something.
  std::string load;      // A command that keeps the GPU busy (docs/calibration.md); may be empty.
};

// Checks on one GPU what Zeus promises of all. It changes limits and puts them back. Call it before
// the process has threads or has opened a driver: it forks.
Result<FirstGpuReport> CheckFirstGpu(const FirstGpuOptions& options);

}  // namespace zeus::cli
