#pragma once

#include "zeus/replay/replay_job.h"

namespace zeus::replay::paper {

// What profiling power limits adds to a whole run, as shares of that run at the best limit.
struct ProfilingOverhead {
  double energy = 0.0;
  double time = 0.0;
};

// With the default batch size, `profiling` in equal parts at each of its limits (Zeus §4.2, §6.5).
ProfilingOverhead OverheadOfProfiling(const ReplayJob& job, Seconds profiling);

}  // namespace zeus::replay::paper
