#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/run/report.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/node.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::cli {

struct MeterOptions {
  std::optional<std::vector<unsigned>> gpus;  // As in "gpu:1"; all when not set.
  bool cpus = true;
};

enum class Refinement {
  kAuto,    // Wait for the sensor where that makes the result better and costs little.
  kAlways,  // Wait for one or two updates of the slowest sensor.
  kNever,
};

// Whether to wait for the sensor after a window that has just ended.
bool WorthRefining(const Measurement& measurement);

// Measures one window after the other on this node. Whatever goes wrong is in the measurement, as
// the reason of a device without a number: measuring never prevents the work. One owner.
class RunMeter {
 public:
  // kNotFound when a GPU was asked for that is not there.
  static Result<std::unique_ptr<RunMeter>> Open(Clock& clock, const MeterOptions& options);

  void Begin();
  Measurement End(Refinement refinement);

  std::vector<DeviceIdentity> Devices() const;  // That are measured.
  // Of the GPUs that tell it, in the order of the node.
  std::vector<Celsius> Temperatures() const;

 private:
  RunMeter(Clock& clock, std::unique_ptr<NodeMonitor> node,
           std::vector<DeviceMeasurement> unmeasured);

  Clock& clock_;
  std::unique_ptr<NodeMonitor> node_;  // Null when there is nothing to measure.
  std::vector<DeviceMeasurement> unmeasured_;
  Status begun_;
  TimePoint begin_{};
  WallTime started_{};
};

}  // namespace zeus::cli
