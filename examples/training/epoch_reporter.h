#pragma once

#include <string>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus::examples {

// Reports to `zeus train` what every epoch used on the simulated GPUs, whose time differs from that
// of the machine, by appending a line of JSON to a file. Does nothing without a file. Not
// thread-safe.
class EpochReporter {
 public:
  // `optimizer` may be null.
  EpochReporter(std::string file, NodeMonitor& monitor, const GlobalPowerLimitOptimizer* optimizer)
      : file_(std::move(file)), monitor_(monitor), optimizer_(optimizer) {}

  // Must be called when training begins.
  Status Begin();

  struct Learned {
    int epoch;  // Counted from 1.
    double metric;
  };
  Status Epoch(const Learned& learned);

 private:
  std::string file_;
  NodeMonitor& monitor_;
  const GlobalPowerLimitOptimizer* optimizer_;
  Seconds time_{0};  // Time and energy until the end of the last epoch.
  Joules energy_{0};
  bool steady_ = false;  // Whether the knob did not change during the epoch.
};

}  // namespace zeus::examples
