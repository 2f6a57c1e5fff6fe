#pragma once

#include "zeus/base/result.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/workload.h"

namespace zeus::sim {

// The work of one training step: a load for models that are not in the catalogue.
struct StepWork {
  double operations;  // Floating-point ones, half precision.
  double bytes;       // To and from the memory of the GPU.

  friend StepWork operator*(const StepWork& work, double times) {
    return {.operations = work.operations * times, .bytes = work.bytes * times};
  }
  friend StepWork operator+(const StepWork& a, const StepWork& b) {
    return {.operations = a.operations + b.operations, .bytes = a.bytes + b.bytes};
  }
};

// The steady state of a GPU that does nothing but such steps; an epoch is one step. A roofline:
// arithmetic takes operations / peak_operations / x at the clock x (a share of the highest one),
// memory takes bytes / memory_bandwidth whatever the clock, one after the other. Power above idle
// is that of a board at its highest limit for arithmetic, less for memory, and falls with the clock
// as PowerShareAt() says. A power limit selects the highest clock that keeps to it; below the
// lowest clock pulses are skipped. So a lower limit or clock cap never makes a step shorter and
// never raises its power. Unlike the catalogue this is not fitted to recordings.
//
// kInvalidArgument when the work is not positive and finite, or the knobs are outside what the
// model accepts. Does not allocate unless it fails.
Result<OperatingPoint> PredictStep(const GpuModel& model, const StepWork& work,
                                   const KnobSettings& knobs);

}  // namespace zeus::sim
