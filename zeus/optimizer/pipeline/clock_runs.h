#pragma once

#include <span>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/optimizer/pipeline/planner.h"
#include "zeus/optimizer/pipeline/problem.h"

namespace zeus::pipeline {

// A choice of points whose clock changes seldom.
struct ClockRuns {
  std::vector<int> choice{};     // Of each computation: into the points of its kind.
  std::vector<Seconds> extra{};  // What each waits for a change of the clock before it.
};

// For each stage the runs of instructions at one clock that take the least energy while no
// computation takes longer than `durations` allow; where that cannot be, as little longer as can
// be. Exact for each stage, by dynamic programming. Computations that take always the same run at
// any clock.
ClockRuns ChooseRuns(const Problem& problem, std::span<const Seconds> durations,
                     const ClockChangeRules& rules);

// How often the clocks of all stages change in one of many iterations.
int CountClockChanges(const Problem& problem, std::span<const int> choice);

// Whether a computation takes the same at every clock.
bool AnyClock(const ComputationKind& kind);

}  // namespace zeus::pipeline
