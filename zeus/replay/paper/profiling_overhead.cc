#include "zeus/replay/paper/profiling_overhead.h"

namespace zeus::replay::paper {

ProfilingOverhead OverheadOfProfiling(const ReplayJob& job, Seconds profiling) {
  const ReplayArm& arm = job.arm(job.default_batch_size);
  const double epochs = arm.MeanEpochs(job.max_epochs).value_or(job.max_epochs);
  const Seconds slice = profiling / static_cast<double>(arm.limits.size());
  Usage added;
  for (const LimitRecord& record : arm.limits) {
    // What is trained meanwhile would have been trained at the best limit.
    const double trained = slice / record.epoch.time;
    added.time += slice - trained * arm.epoch.time;
    added.energy += record.power * slice - trained * arm.epoch.energy;
  }
  return {.energy = added.energy / (epochs * arm.epoch.energy),
          .time = added.time / (epochs * arm.epoch.time)};
}

}  // namespace zeus::replay::paper
