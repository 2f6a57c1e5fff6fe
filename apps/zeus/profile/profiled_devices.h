#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/zeus/run/report.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/knob.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/optimizer/power_limit/monitor_slice_meter.h"

namespace zeus::cli {

// The devices that a sweep limits and measures: GPUs, or the CPU packages. One owner.
class ProfiledDevices {
 public:
  // `gpus` as in "gpu:1"; all when not set. kNotFound with one sentence when there is nothing to
  // turn the knob of.
  static Result<std::unique_ptr<ProfiledDevices>> Open(
      Clock& clock, KnobKind kind, const std::optional<std::vector<unsigned>>& gpus);

  Knob& knob() { return *knob_; }
  SliceMeter& meter() { return *meter_; }

  const std::vector<DeviceIdentity>& identities() const { return identities_; }
  const std::string& driver() const { return driver_; }  // Empty if it does not tell.

 private:
  explicit ProfiledDevices(std::unique_ptr<NodeMonitor> node) : node_(std::move(node)) {}

  Status MakeKnob(KnobKind kind);
  void MakeMeter(KnobKind kind);

  std::unique_ptr<NodeMonitor> node_;
  std::unique_ptr<MonitorSliceMeter> meter_;
  std::unique_ptr<Knob> knob_;
  std::vector<DeviceIdentity> identities_;
  std::string driver_;
};

}  // namespace zeus::cli
