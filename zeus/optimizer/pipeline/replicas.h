#pragma once

#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/planner.h"

namespace zeus::pipeline {

// Data-parallel replicas of one pipeline that wait for each other at the end of each iteration.
struct ReplicaScenario {
  int replicas = 16;
  int stragglers = 1;     // How many of them are slow.
  double slowdown = 1.2;  // Their pace against the baseline.
};

struct ReplicaOutcome {
  Seconds pace{0};            // Of the whole job.
  Joules baseline_energy{};   // Everybody at the highest clock, waiting for the stragglers.
  Joules planned_energy{};    // The others planned for the pace.
  Joules intrinsic_energy{};  // The others planned as if there were no straggler.
  double saving() const { return 1 - planned_energy / baseline_energy; }
  double intrinsic_saving() const { return 1 - intrinsic_energy / baseline_energy; }
};

// One iteration of the whole job. Stragglers are slow for a reason that no clock can mend (heat,
// input): they take the baseline's power for their whole iteration.
Result<ReplicaOutcome> PlanReplicas(const Planner& planner, const ReplicaScenario& scenario);

}  // namespace zeus::pipeline
