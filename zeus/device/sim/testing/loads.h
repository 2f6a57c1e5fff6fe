#pragma once

#include "zeus/device/sim/gpu_core.h"
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

// Long enough for latencies and temperatures to settle.
inline void Settle(GpuCore& core) { core.AdvanceTo(core.now() + std::chrono::minutes(10)); }

// Measures a warm GPU of that model under a workload for an hour: time from the steps that it
// completes, power from its exact energy.
struct Performance {
  Seconds time_per_epoch;
  Watts average_power;
};
inline Result<Performance> RunWarm(const GpuModel& model, const Workload& workload,
                                   unsigned batch_size, Watts power_limit) {
  using namespace std::chrono_literals;
  GpuCore core(model, 1, 0);
  ZEUS_RETURN_IF_ERROR(core.SetPowerLimit(power_limit));
  LoadSpec load;
  load.workload = &workload;
  load.batch_size = batch_size;
  ZEUS_TRY(const std::uint32_t id, core.AttachLoad(load));
  Settle(core);
  ZEUS_TRY(const double steps_before, core.StepsDone(id));
  const Joules energy_before = core.exact_energy();
  const Seconds time = 1h;
  core.AdvanceTo(core.now() + time);
  ZEUS_TRY(const double steps, core.StepsDone(id));
  const auto epoch = static_cast<double>(StepsPerEpoch(workload, batch_size));
  return Performance{.time_per_epoch = time / (steps - steps_before) * epoch,
                     .average_power = (core.exact_energy() - energy_before) / time};
}

}  // namespace zeus::sim::testing
