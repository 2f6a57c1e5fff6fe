#pragma once

#include <vector>

#include "zeus/base/result.h"
#include "zeus/optimizer/pipeline/planner.h"

namespace zeus::pipeline {

// Data-parallel replicas of one pipeline, which wait for each other at the end of each iteration.
struct ReplicaScenario {
  int replicas = 16;
  int stragglers = 1;     // Number of slow replicas.
  double slowdown = 1.2;  // Iteration time of a straggler relative to the baseline.
};

// Energies of one iteration of all replicas together.
struct ReplicaOutcome {
  Seconds pace{0};            // Iteration time of the whole job.
  Joules baseline_energy{};   // Energy with all at the highest clock, waiting for the stragglers.
  Joules planned_energy{};    // Energy with plans for the pace in all but the stragglers.
  Joules intrinsic_energy{};  // Energy with plans that ignore the stragglers.
  double saving() const { return 1 - planned_energy / baseline_energy; }
  double intrinsic_saving() const { return 1 - intrinsic_energy / baseline_energy; }
};

// Computes one iteration of the whole job. Stragglers are slow for a reason that no clock can
// change (heat, input): they take the baseline's power for their whole iteration.
Result<ReplicaOutcome> PlanReplicas(const Planner& planner, const ReplicaScenario& scenario);

}  // namespace zeus::pipeline
