#pragma once

#include <optional>
#include <span>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/shift/signal.h"

namespace zeus {

// Follows the signal with the power limit instead of waiting: fast while power is clean or cheap,
// slow while it is not.
//
// The cost is eta * energy, weighed by the signal relative to its mean, plus (1 - eta) * MAXPOWER *
// time. Work done at any moment serves equally well, so there is one price of work: at each moment
// the best limit maximises price * rate - weighed power. Whatever the price, no other schedule that
// takes the same total time costs less, and the constant limits are such schedules. The planner
// tries every price at which a decision changes and keeps the one with the least cost in all.

// The speed of a job at one power limit.
struct LimitPoint {
  Watts limit;
  double rate;  // Work per second, in any unit.
  Watts power;  // The draw of the job.
};

struct FollowRequest {
  WallTime now{};
  std::vector<LimitPoint> profile{};  // At least one.
  double work = 0;                    // The work that is left, in the unit of the rates.
  double eta = 0.5;
  Watts max_power{};                     // MAXPOWER of the cost.
  WallTime finish_by = WallTime::max();  // With the margin taken off.
};

struct FollowPlan {
  struct Span {
    WallTime from;
    WallTime until;
    Watts limit;
  };
  struct Amounts {
    double cost = 0;  // Grams or money.
    Joules energy{};
    Seconds time{};
  };
  std::vector<Span> spans{};  // Without gaps, until the work is done.
  Amounts amounts{};
  // The constant limit with the least cost in the same sense, and
  Watts best_constant{};
  Amounts constant{};
  // what a mixture of constant limits that ignores the signal costs in the time of the plan: so
  // much is due to following.
  double constant_in_same_time = 0;
  bool meets_deadline = true;

  Watts LimitAt(WallTime time) const;
};

// Returns kInvalidArgument for a profile or amounts that make no sense. A deadline that cannot be
// met gives the fastest schedule. Where the signal ends it is extended.
Result<FollowPlan> PlanFollowing(Signal signal, const FollowRequest& request);

}  // namespace zeus
