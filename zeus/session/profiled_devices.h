#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/monitor/own_share.h"
#include "zeus/optimizer/power_limit/slice_meter.h"
#include "zeus/training/global_power_limit_optimizer.h"

namespace zeus {

// The devices that a search limits and measures: GPUs, or the CPU packages. One owner.
class ProfiledDevices {
 public:
  struct Wanted {
    KnobKind kind = KnobKind::kGpuPowerLimit;
    std::optional<std::vector<unsigned>> gpus{};  // As in "gpu:1"; all when not set.
    Ceiling ceiling = Ceiling::kAsFound;          // The knob is not turned above it.
    Seconds driver_timeout{30};                   // How long drivers may take to find devices.
    // For programs that do not wait for signals themselves: SIGINT, SIGTERM and SIGHUP restore the
    // knob before they end the program, see KnobGuard.
    bool guard_knob = false;
  };
  // kNotFound with one sentence when there is nothing to turn the knob of, kUnavailable when a
  // wanted GPU does not answer in time: a search or a training without it would not be what was
  // asked for.
  static Result<std::unique_ptr<ProfiledDevices>> Open(Clock& clock, const Wanted& wanted);

  Knob& knob() { return guard_ != nullptr ? *guard_ : *job_.knob; }
  SliceMeter& meter() { return meter_; }
  // Another one, for what is measured at the same time.
  MonitorSliceMeter NewMeter() { return {node_->monitor(), job_.devices}; }

  // Which part of their energy is that of other processes.
  OwnShare NewShare() const { return {node_->monitor(), job_.devices}; }

  // Whether all of them are being measured now; says which is not, and why.
  Status CheckMeasured() const;

  const std::vector<JobKnob::Device>& turned() const { return job_.turned; }
  const std::string& driver() const { return job_.driver; }  // Empty if it does not tell.

 private:
  ProfiledDevices(std::unique_ptr<NodeMonitor> node, JobKnob job, const Wanted& wanted)
      : node_(std::move(node)), job_(std::move(job)), meter_(node_->monitor(), job_.devices) {
    if (wanted.guard_knob) guard_ = std::make_unique<KnobGuard>(*job_.knob);
  }

  std::unique_ptr<NodeMonitor> node_;
  JobKnob job_;
  std::unique_ptr<KnobGuard> guard_;  // Null when the caller waits for signals itself.
  MonitorSliceMeter meter_;
};

}  // namespace zeus
