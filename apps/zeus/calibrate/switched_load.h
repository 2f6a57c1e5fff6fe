#pragma once

#include "zeus/base/result.h"
#include "zeus/monitor/calibration/load_pattern.h"

namespace zeus::cli {

// A load on one GPU that can be switched on and off at once. It starts idle and is removed by its
// destructor. Not thread-safe.
class SwitchedLoad {
 public:
  virtual ~SwitchedLoad() = default;

  virtual Status Switch(calibration::LoadState state) = 0;
};

}  // namespace zeus::cli
