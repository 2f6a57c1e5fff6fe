#pragma once

#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// For each stage the runs of instructions at one clock that take the least energy while no
// computation takes longer than `durations` allow; where that cannot be, as little longer as can
// be. Which point each computation runs at. Exact for each stage, by dynamic programming.
// Computations that take always the same run at any clock.
std::vector<int> ChooseRuns(const Problem& problem, std::span<const Seconds> durations,
                            const ClockChangeRules& rules);

// Lowers the clock of whole runs, those first that save most, as long as the iteration meets the
// deadline.
void SlowRunsDown(const Problem& problem, Seconds deadline, Seconds latency,
                  std::vector<int>& choice);

// What each computation waits because the clock changes before it, in one of many iterations.
std::vector<Seconds> WaitsForChanges(const Problem& problem, std::span<const int> choice,
                                     Seconds latency);

// How often the clocks of all stages change in one of many iterations.
int CountClockChanges(const Problem& problem, std::span<const int> choice);

// Whether a computation takes the same at every clock.
bool AnyClock(const ComputationKind& kind);

}  // namespace zeus::pipeline
