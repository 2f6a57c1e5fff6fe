#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/carbon/carbon_accounting.h"
#include "zeus/job/job.h"
#include "zeus/optimizer/shift/duration_belief.h"
#include "zeus/optimizer/shift/start_planner.h"

// When the next recurrence of a job should begin: its history says how long it takes and what it
// draws, a forecast when power is clean or cheap.
namespace zeus {

// A recurrence as its history promises it.
struct RunEstimate {
  DurationBelief duration = DurationBelief::Of(Seconds(0), Seconds(0));
  Watts power{};
  int runs = 0;                // Recurrences that it is made from; 0: somebody said so.
  bool power_assumed = false;  // The power is not known: 1 kW stands for it.
};

// From the latest recurrences that reached their target; on this GPU model when there are any, else
// on all. nullopt when there are none.
std::optional<RunEstimate> EstimateRun(std::span<const Trial> trials, const std::string& gpu_model);

struct StartWish {
  ShiftGoal goal = ShiftGoal::kCarbon;
  std::optional<WallTime> finish_by{};
  std::optional<Seconds> max_wait{};  // After the first moment. One of the two is needed.
  Seconds margin = std::chrono::minutes(5);
  // The words of a user win over the history.
  std::optional<Seconds> duration{};
  std::optional<Watts> power{};
};

// Reads {"goal": "carbon", "finish_within_seconds": 86400, "max_wait_seconds": …, "margin_seconds":
// …, "duration_seconds": …}. Spans instead of moments: the clocks of caller and server may differ.
Result<StartWish> StartWishFromJson(const Json& json, WallTime now);

struct StartAdvice {
  StartPlan plan{};
  ShiftGoal goal = ShiftGoal::kCarbon;
  std::string unit{};    // "g" of CO2e, or a currency.
  std::string source{};  // Where the forecast comes from.
  bool marginal = false;
  bool assumed = false;  // The forecast or the part that the plan lies in is assumed.
  RunEstimate run{};
  WallTime made_at{};  // The moment when the forecast was made.
  // Whether a run that starts now ends in time, where not even that is sure.
  enum class Lateness { kNone, kPossible, kLikely, kCertain };
  Lateness lateness = Lateness::kNone;
  std::vector<std::string> notes{};
};

// `first_moment` is when the run could have begun, from which max_wait counts; `known` comes from
// EstimateRun(). Returns kInvalidArgument when the wish makes no sense or the duration is not
// known, and the error of the forecast when there is none.
Result<StartAdvice> AdviseStart(const CarbonAccounting& accounting, const StartWish& wish,
                                const std::optional<RunEstimate>& known, WallTime first_moment,
                                WallTime now);

// "starts at 2026-11-18T02:00:00Z, 5.2 h from now: 24.1 ± 3.0 % less CO2e expected (…)", or why it
// starts now.
std::string ToSentence(const StartAdvice& advice, WallTime now);
Json ToJson(const StartAdvice& advice);

}  // namespace zeus
