#pragma once

#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// A *run* is a sequence of instructions of one stage at the same clock. Plans that change clocks
// seldom consist of long runs.

// Returns the point of each computation such that each stage's runs keep the rules and take the
// least energy while no computation takes longer than `durations` allow, or as little longer as
// possible. Exact for each stage, by dynamic programming. Computations with a single point fit into
// runs at any clock.
std::vector<int> ChooseRuns(const Problem& problem, std::span<const Seconds> durations,
                            const ClockChangeRules& rules);

// Lowers the clocks of whole runs while the iteration meets the deadline, starting with those that
// save most.
void SlowRunsDown(const Problem& problem, Seconds deadline, Seconds latency,
                  std::vector<int>& choice);

// Returns how long each computation waits for a change of the clock before it, in one of many equal
// iterations.
std::vector<Seconds> WaitsForChanges(const Problem& problem, std::span<const int> choice,
                                     Seconds latency);

// Returns how often the clocks of all stages change in one of many equal iterations.
int CountClockChanges(const Problem& problem, std::span<const int> choice);

// Whether time and energy of a computation do not depend on the clock.
bool AnyClock(const ComputationKind& kind);

}  // namespace zeus::pipeline
