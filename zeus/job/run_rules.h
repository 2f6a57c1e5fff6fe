#pragma once

#include <optional>

#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"

// The life of a run as its policy sees it: whether it begins, when it is stopped, what is told of
// it, and whether another try follows. The same rules for the jobs of a server (JobChange) and for
// recorded ones (zeus/replay). Pure.
namespace zeus {

// Tries of a recurrence, after which it is given up: as many as the reference allows.
inline constexpr int kMostAttempts = 20;

PlannedRun Plan(const Situation& situation, const Choice& choice);

// What the policy allows a run whose epochs cost so much.
struct RunBound {
  // Not when even one epoch is too dear; the last try of a recurrence always does.
  bool begins = true;
  // A run that has not reached its target by then is stopped. 1 at least: nothing is known about a
  // run before its first epoch has ended.
  int last_epoch = 0;
};
// An epoch that costs nothing, or nobody knows what, is no reason to stop.
RunBound BoundOf(const BatchSizePolicy& policy, const PlannedRun& run,
                 std::optional<Joules> epoch_cost, int max_epochs);

// How a run ended. As it stands: the run was not begun.
struct RunEnd {
  bool converged = false;
  int epochs = 0;
  Joules cost{};
  std::optional<Joules> epoch_cost{};
};
// What the policy is told; `earlier` is what the earlier tries of the recurrence cost.
RunResult ResultOf(const PlannedRun& run, const RunEnd& end, Joules earlier);

// After a run that did not reach its target. Not where every batch size that the policy may choose
// was run and none has ever reached it.
bool AnotherTryMayHelp(const BatchSizePolicy& policy, const PlannedRun& run, bool any_converged);

}  // namespace zeus
