#pragma once

#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/load.h"
#include "zeus/device/sim/workload.h"

// Short names for what every test of a simulated GPU needs.
namespace zeus::sim::testing {

inline const GpuModel& Model(const char* id) { return *FindGpuModel(id).value(); }

inline LoadSpec Draw(Watts demand) {
  LoadSpec spec;
  spec.demand = demand;
  return spec;
}

inline LoadSpec DrawFor(Seconds duration, Watts demand) {
  LoadSpec spec = Draw(demand);
  spec.duration = duration;
  return spec;
}

inline LoadSpec Train(const char* workload, unsigned batch_size) {
  LoadSpec spec;
  spec.workload = FindWorkload(workload).value();
  spec.batch_size = batch_size;
  return spec;
}

}  // namespace zeus::sim::testing
