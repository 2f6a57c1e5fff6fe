#pragma once

#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/shift/duration_belief.h"
#include "zeus/optimizer/shift/signal.h"
#include "zeus/optimizer/shift/start_planner.h"

namespace zeus {

// Which hours an interruptible run works in. Work is done in blocks, an epoch for instance, at the
// end of which the run can pause; each resume costs some time again. Blocks begin on a grid, and a
// dynamic programme over (blocks left, moment, running or not) finds the cheapest places for all of
// them: exact on the grid, whatever the shape of the signal.

struct PauseRequest {
  WallTime now{};
  DurationBelief left = DurationBelief::Of(Seconds(0), Seconds(0));  // The work that is left.
  Watts power{};
  WallTime finish_by{};
  Seconds margin = std::chrono::minutes(5);
  Seconds block{};           // How long it takes from one possible pause to the next.
  Seconds resume{0};         // The time that a resume costs, at the power of the run.
  bool running = false;      // False: the run has not begun, or is paused.
  bool begun = false;        // A start that is a resume costs one.
  double least_gain = 0.01;  // As in ShiftRequest.
};

struct PausePlan {
  struct Span {
    WallTime from;
    WallTime until;
  };
  // The spans of work, in order; at least one.
  std::vector<Span> spans{};
  ShiftReason reason = ShiftReason::kNothingToGain;
  bool meets_deadline = true;
  bool assumed = false;
  ShiftExpectation expected{};  // Against running through from now on.

  bool WorksAt(WallTime time) const;
  // The end of the pause in which `time` lies; `time` itself while the plan works, or is over.
  WallTime NextWorkFrom(WallTime time) const;
};

// Returns a plan that runs through when pauses gain nothing that is sure, or when the deadline
// leaves no time for them. Errors as those of PlanStart().
Result<PausePlan> PlanPauses(Signal signal, const PauseRequest& request);

}  // namespace zeus
