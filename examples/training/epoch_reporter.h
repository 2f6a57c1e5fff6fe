#pragma once

#include <string>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus::examples {

// Tells `zeus train` of every epoch what it took on the simulated GPUs, whose time is not that of
// the machine: a line of JSON in a file. Without a file it does nothing. One owner.
class EpochReporter {
 public:
  // The optimiser may be null.
  EpochReporter(std::string file, NodeMonitor& monitor, const GlobalPowerLimitOptimizer* optimizer)
      : file_(std::move(file)), monitor_(monitor), optimizer_(optimizer) {}

  // Training begins.
  Status Begin();

  struct Learned {
    int epoch;  // From 1.
    double metric;
  };
  Status Epoch(const Learned& learned);

 private:
  std::string file_;
  NodeMonitor& monitor_;
  const GlobalPowerLimitOptimizer* optimizer_;
  Seconds time_{0};  // Until the last epoch, as is the next.
  Joules energy_{0};
  bool steady_ = false;  // The knob stayed as it is during the whole epoch.
};

}  // namespace zeus::examples
