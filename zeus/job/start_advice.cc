#include "zeus/job/start_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/carbon/shift_report.h"
#include "zeus/job/recurrences.h"

namespace zeus {
namespace {

constexpr std::size_t kLatest = 20;  // So many recurrences say what is normal now.
// A duration that somebody says is believed to within this part.
constexpr double kErrorOfWords = 0.1;

// The joules cancel where only shares are compared, so without any power this one serves.
constexpr Watts kAnyPower{1000};

std::string_view Name(ShiftReason reason) {
  switch (reason) {
    case ShiftReason::kGain:
      return "gain";
    case ShiftReason::kNothingToGain:
      return "nothing_to_gain";
    case ShiftReason::kUnsure:
      return "unsure";
    case ShiftReason::kNoTime:
      return "no_time";
  }
  return "";
}

Result<RunEstimate> Estimate(const StartWish& wish, const std::optional<RunEstimate>& known) {
  RunEstimate run = known.value_or(RunEstimate{});
  if (wish.duration) {
    run.duration = DurationBelief::Of(*wish.duration, kErrorOfWords * *wish.duration);
    run.runs = 0;
  } else if (!known) {
    return InvalidArgument(
        "how long the run takes is not known, because no recurrence has reached its target yet: "
        "say it with --duration, or let it run once without shifting");
  }
  if (wish.power) run.power = *wish.power;
  run.power_assumed = !(run.power > Watts(0));
  if (run.power_assumed) run.power = kAnyPower;
  return run;
}

StartAdvice::Lateness LatenessOf(const StartPlan& plan, const StartWish& wish,
                                 const DurationBelief& duration, WallTime now) {
  if (plan.meets_deadline || !wish.finish_by) return StartAdvice::Lateness::kNone;
  const Seconds left = *wish.finish_by - now;
  // As unlikely as a run that takes longer than the longest.
  const Seconds shortest = duration.mean() - (duration.longest() - duration.mean());
  if (shortest > left) return StartAdvice::Lateness::kCertain;
  return duration.mean() > left ? StartAdvice::Lateness::kLikely : StartAdvice::Lateness::kPossible;
}

std::string_view Name(StartAdvice::Lateness lateness) {
  switch (lateness) {
    case StartAdvice::Lateness::kNone:
      return "";
    case StartAdvice::Lateness::kPossible:
      return "may end too late";
    case StartAdvice::Lateness::kLikely:
      return "will most likely end too late";
    case StartAdvice::Lateness::kCertain:
      return "will end too late";
  }
  return "";
}

std::string GainText(const StartAdvice& advice) {
  const ShiftExpectation& expected = advice.plan.expected;
  const std::string_view what = advice.goal == ShiftGoal::kCarbon ? "CO2e" : "cost";
  if (expected.cost_now > 0)
    return fmt::format("{} less {}", PercentWithSigma(expected.percent(), expected.percent_sigma()),
                       what);
  return fmt::format("{} less", AmountText({expected.gain(), expected.gain_sigma}, advice.unit));
}

}  // namespace

Result<StartWish> StartWishFromJson(const Json& json, WallTime now) {
  constexpr double kYear = 366 * 86400.0;
  StartWish wish;
  FieldReader fields("a wish for a start", json);
  std::string goal;
  fields.Require("goal", goal);
  if (goal == "price") wish.goal = ShiftGoal::kPrice;
  if (goal != "price" && goal != "carbon") fields.Fail("goal", "must be carbon or price");
  const auto seconds = [&](const char* field) -> std::optional<Seconds> {
    std::optional<double> value;
    fields.Read(field, value);
    if (!value) return std::nullopt;
    if (!(*value >= 0 && *value <= kYear)) fields.Fail(field, "must be between 0 and a year");
    return Seconds(*value);
  };
  if (const auto within = seconds("finish_within_seconds")) wish.finish_by = Later(now, *within);
  wish.max_wait = seconds("max_wait_seconds");
  wish.margin = seconds("margin_seconds").value_or(wish.margin);
  wish.duration = seconds("duration_seconds");
  ZEUS_RETURN_IF_ERROR(fields.Finish());
  if (!wish.finish_by && !wish.max_wait)
    return FieldError("finish_within_seconds", "it or max_wait_seconds is needed");
  return wish;
}

std::optional<RunEstimate> EstimateRun(std::span<const Trial> trials,
                                       const std::string& gpu_model) {
  const std::vector<RecurrenceAmounts> all = ByRecurrence(trials);
  for (const bool same_model : {true, false}) {
    std::vector<Seconds> durations;
    Joules energy{};
    Seconds time{0};
    for (auto it = all.rbegin(); it != all.rend() && durations.size() < kLatest; ++it) {
      if (!it->converged || it->under_way || !it->Comparable() || !(it->time > Seconds(0)) ||
          (same_model && it->gpu_model != gpu_model))
        continue;
      durations.push_back(it->time);
      energy += it->energy;
      time += it->time;
    }
    if (durations.empty()) continue;
    return RunEstimate{.duration = DurationBelief::FromRuns(durations),
                       .power = energy / time,
                       .runs = static_cast<int>(durations.size())};
  }
  return std::nullopt;
}

Result<StartAdvice> AdviseStart(const CarbonAccounting& accounting, const StartWish& wish,
                                const std::optional<RunEstimate>& known, WallTime first_moment,
                                WallTime now) {
  if (!wish.finish_by && !wish.max_wait)
    return InvalidArgument("shifting needs a time to finish by, or how long it may wait");
  ZEUS_TRY(RunEstimate run, Estimate(wish, known));
  ShiftRequest request{.now = now,
                       .duration = run.duration,
                       .power = {{.share = 1, .power = run.power}},
                       .margin = wish.margin};
  if (wish.finish_by) request.finish_by = *wish.finish_by;
  if (wish.max_wait) request.latest_start = Later(first_moment, *wish.max_wait);
  ZEUS_RETURN_IF_ERROR(Check(request));
  const WallTime last_start = std::max(LatestStart(request), now);
  const WallTime last = Later(last_start, run.duration.longest());
  ZEUS_TRY(Forecast forecast, accounting.ForecastFor(wish.goal, now, last));
  ZEUS_TRY(StartPlan plan, PlanStart(forecast.signal, request));
  const StartAdvice::Lateness lateness = LatenessOf(plan, wish, run.duration, now);
  return StartAdvice{.plan = plan,
                     .goal = wish.goal,
                     .unit = accounting.UnitOf(wish.goal),
                     .source = forecast.source,
                     .marginal = forecast.marginal,
                     .assumed = forecast.assumed || plan.assumed,
                     .run = run,
                     .made_at = forecast.made_at,
                     .lateness = lateness,
                     .notes = std::move(forecast.notes)};
}

std::string ToSentence(const StartAdvice& advice, WallTime now) {
  const StartPlan& plan = advice.plan;
  std::string text;
  switch (plan.reason) {
    case ShiftReason::kGain:
      text = fmt::format("the run starts at {}, {} from now: {} expected", ToText(plan.start),
                         TimeText(plan.start - now), GainText(advice));
      break;
    case ShiftReason::kNothingToGain:
      text = "the run starts now: waiting would gain nothing";
      break;
    case ShiftReason::kUnsure:
      text = fmt::format("the run starts now: {} at {} would be within the error of the forecast",
                         GainText(advice), ToText(plan.considered));
      break;
    case ShiftReason::kNoTime:
      text = plan.meets_deadline
                 ? "the run starts now: there is no time left to wait"
                 : fmt::format("the run starts now and {}: it takes {}, at most {}",
                               Name(advice.lateness), TimeText(advice.run.duration.mean()),
                               TimeText(advice.run.duration.longest()));
      break;
  }
  text += fmt::format(" ({}{})", advice.source,
                      advice.marginal ? ", marginal: of the plants that would run more" : "");
  if (plan.reason == ShiftReason::kGain && advice.assumed)
    text += "; a part of it is assumed and not forecast";
  return text;
}

Json ToJson(const StartAdvice& advice) {
  const StartPlan& plan = advice.plan;
  return {{"schema", "zeus.start_advice/1"},
          {"goal", advice.goal == ShiftGoal::kCarbon ? "carbon" : "price"},
          {"start_at", ToText(plan.start)},
          {"latest_start", plan.latest == WallTime::max() ? Json() : Json(ToText(plan.latest))},
          {"reason", Name(plan.reason)},
          {"meets_deadline", plan.meets_deadline},
          {"considered", ToText(plan.considered)},
          {"expected",
           {{"unit", advice.unit},
            {"amount", plan.expected.cost},
            {"amount_now", plan.expected.cost_now},
            {"gain", plan.expected.gain()},
            {"gain_sigma", plan.expected.gain_sigma},
            {"gain_percent", plan.expected.percent()}}},
          {"run",
           {{"duration_seconds", advice.run.duration.mean().count()},
            {"duration_sigma_seconds", advice.run.duration.sigma().count()},
            {"longest_seconds", advice.run.duration.longest().count()},
            {"power_watts", advice.run.power.value()},
            {"power_assumed", advice.run.power_assumed},
            {"recurrences", advice.run.runs}}},
          {"forecast",
           {{"source", advice.source},
            {"made_at", ToText(advice.made_at)},
            {"marginal", advice.marginal},
            {"assumed", advice.assumed}}},
          {"notes", advice.notes}};
}

}  // namespace zeus
