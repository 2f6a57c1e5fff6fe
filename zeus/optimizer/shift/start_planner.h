#pragma once

#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/shift/duration_belief.h"
#include "zeus/optimizer/shift/signal.h"

namespace zeus {

// When a run of one piece begins best. The carbon or the price of a run that begins at t is the sum
// over its steps of power times the integral of the signal; as a function of t it is made of
// straight lines that meet where the begin, the end or a change of power of the run meets a step of
// the signal. So the least of these finitely many is the exact minimum.

// The power of a run over its length, in order.
struct PowerPhase {
  double share;  // A part of the run's length; all shares together are 1.
  Watts power;
};

// A gain must be larger than this many standard errors. One would not do: the best of many starts
// looks better than it is, by about one error where all of them are equally good. With two, a tenth
// of the carbon that can be saved would not be.
inline constexpr double kSureGain = 1.5;

struct ShiftRequest {
  WallTime now{};
  DurationBelief duration = DurationBelief::Of(Seconds(0), Seconds(0));
  std::vector<PowerPhase> power{};  // At least one phase.
  WallTime finish_by = WallTime::max();
  WallTime not_before = WallTime::min();
  WallTime latest_start = WallTime::max();   // A bound on waiting, however late the deadline is.
  Seconds margin = std::chrono::minutes(5);  // Kept free before the deadline.
  // A start that gains less than this share of the cost is not worth waiting for.
  double least_gain = 0.01;
};

// kInvalidArgument with the name of what makes no sense.
Status Check(const ShiftRequest& request);

// The last moment at which a run can begin and still end in time, as sure as the belief can say.
WallTime LatestStart(const ShiftRequest& request);

// An expectation, never a result: how much was saved is known afterwards.
struct ShiftExpectation {
  double cost = 0;        // Expected grams or money of the plan,
  double cost_now = 0;    // and of a run that begins at once.
  double gain_sigma = 0;  // Standard error of the difference, from forecast and duration.

  double gain() const { return cost_now - cost; }
  // The gain in per cent of the cost now; 0 where that is not positive.
  double percent() const { return cost_now > 0 ? 100 * gain() / cost_now : 0; }
  double percent_sigma() const { return cost_now > 0 ? 100 * gain_sigma / cost_now : 0; }
};

enum class ShiftReason {
  kGain,  // Waiting gains enough, see kSureGain.
  kNothingToGain,
  kUnsure,  // Waiting would gain something that may be an error.
  kNoTime,  // The deadline leaves no room, or cannot be met.
};

struct StartPlan {
  WallTime start{};
  WallTime latest{};  // See LatestStart(); never before `now`.
  ShiftReason reason = ShiftReason::kNothingToGain;
  bool meets_deadline = true;   // False: not even a start at once is sure to end in time.
  bool assumed = false;         // A part of the plan lies where the signal is assumed.
  WallTime considered{};        // The start that seems best, taken or not,
  ShiftExpectation expected{};  // and what it promises.
};

// Extends the signal where it ends before the run could. Returns kInvalidArgument for a request
// that makes no sense, and when the signal ends before `now` or begins more than an hour after it.
Result<StartPlan> PlanStart(Signal signal, const ShiftRequest& request);

// The pieces of power of a run that begins then and takes so long.
std::vector<PowerPiece> PiecesOf(const std::vector<PowerPhase>& phases, WallTime start,
                                 Seconds duration);

}  // namespace zeus
