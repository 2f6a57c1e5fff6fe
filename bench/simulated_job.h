#pragma once

#include <memory>

#include "zeus/base/stepped_clock.h"
#include "zeus/device/device_knob.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/sensor_profile.h"
#include "zeus/optimizer/power_limit/monitor_slice_meter.h"
#include "zeus/optimizer/power_limit/power_limit_optimizer.h"

namespace zeus::bench {

// A workload of the catalogue on one simulated GPU in virtual time, measured through its sensors.
class SimulatedJob {
 public:
  SimulatedJob(const sim::GpuModel& model, const sim::Workload& workload, unsigned batch_size,
               std::uint64_t seed = 1)
      : gpu_(clock_, model, {.seed = seed}),
        monitor_(clock_, {{.meter = &gpu_, .gpu = &gpu_, .sensor = PriorProfile(gpu_.identity())}}),
        meter_(monitor_, {0}),
        knob_(DeviceKnob::Of(KnobKind::kGpuPowerLimit, gpu_).value()),
        load_(gpu_.AttachLoad({.demand = {}, .workload = &workload, .batch_size = batch_size})
                  .value()) {
    clock_.Run([this] { return monitor_.Step(); });
    clock_.Advance(Seconds(10));  // The job has started: the GPU is warm and the sensors are known.
    steps_ = gpu_.StepsDone(load_).value();
  }

  PowerLimitOptimizer::Parts parts() { return {clock_, *knob_, meter_, alone_}; }

  // Until the GPU has done one step more.
  void Step() {
    steps_ += 1;
    for (double left = steps_ - Done(); left > 1e-9; left = steps_ - Done())
      clock_.Advance(left * gpu_.StepTime(load_).value());
  }

  Seconds time() const { return clock_.Now().time_since_epoch(); }
  Joules energy() { return gpu_.ExactEnergy(); }
  sim::SimulatedGpu& gpu() { return gpu_; }

 private:
  double Done() { return gpu_.StepsDone(load_).value(); }

  SteppedClock clock_;
  sim::SimulatedGpu gpu_;
  EnergyMonitor monitor_;
  MonitorSliceMeter meter_;
  std::unique_ptr<DeviceKnob> knob_;
  SingleProcess alone_;
  std::uint32_t load_;
  double steps_ = 0;
};

}  // namespace zeus::bench
