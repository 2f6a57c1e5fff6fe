#include "zeus/optimizer/shift/pause_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace zeus {
namespace pause_planner_test {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;

constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);

Signal Hourly(const std::vector<double>& values, double sigma = 0) {
  std::vector<Signal::Step> steps;
  for (std::size_t i = 0; i < values.size(); ++i)
    steps.push_back({kBegin + hours(i), values[i], sigma});
  return Signal::Create(steps, kBegin + hours(values.size())).value();
}

PauseRequest Hours(int work, int until) {
  return {.now = kBegin,
          .left = DurationBelief::Of(hours(work), Seconds(0)),
          .power = Watts(1000),
          .finish_by = kBegin + hours(until),
          .margin = Seconds(0),
          .block = hours(1)};
}

Seconds WorkOf(const PausePlan& plan) {
  Seconds work{0};
  for (const auto& span : plan.spans) work += span.until - span.from;
  return work;
}

TEST(PausePlannerTest, WorksInTheCheapHoursOnly) {
  const Signal signal = Hourly({100, 10, 100, 100, 10, 10, 100, 100});
  const PausePlan plan = PlanPauses(signal, Hours(3, 8)).value();
  ASSERT_EQ(plan.spans.size(), 2);
  EXPECT_EQ(plan.spans[0].from, kBegin + hours(1));
  EXPECT_EQ(plan.spans[0].until, kBegin + hours(2));
  EXPECT_EQ(plan.spans[1].from, kBegin + hours(4));
  EXPECT_EQ(plan.spans[1].until, kBegin + hours(6));
  EXPECT_NEAR(plan.expected.cost, 30, 1e-9);
  EXPECT_NEAR(plan.expected.cost_now, 210, 1e-9);
  EXPECT_EQ(plan.NextWorkFrom(kBegin), kBegin + hours(1));
  EXPECT_TRUE(plan.WorksAt(kBegin + minutes(90)));
  EXPECT_EQ(plan.NextWorkFrom(kBegin + hours(2)), kBegin + hours(4));
}

TEST(PausePlannerTest, AResumeThatCostsMoreThanThePauseGainsIsNotMade) {
  const Signal signal = Hourly({100, 10, 40, 10, 100, 100, 100, 100});
  PauseRequest request = Hours(2, 8);
  EXPECT_EQ(PlanPauses(signal, request).value().spans.size(), 2);
  request.resume = hours(4);  // Would cost more than the hour of 40 does.
  request.finish_by = kBegin + hours(8);
  const PausePlan plan = PlanPauses(signal, request).value();
  ASSERT_EQ(plan.spans.size(), 1);
  EXPECT_EQ(WorkOf(plan), Seconds(hours(2)));
}

TEST(PausePlannerTest, ARunThatIsUnderWayPaysForThePauseThatBeginsNow) {
  const Signal signal = Hourly({100, 10, 10, 100});
  PauseRequest request = Hours(1, 4);
  request.begun = request.running = true;
  request.resume = minutes(6);
  const PausePlan plan = PlanPauses(signal, request).value();
  ASSERT_EQ(plan.spans.size(), 1);
  EXPECT_EQ(plan.spans[0].from, kBegin + hours(1));
  EXPECT_EQ(plan.spans[0].until, kBegin + hours(2) + minutes(6));
  EXPECT_NEAR(plan.expected.cost, 11, 1e-9);
}

// All ways to choose the hours, one by one.
double BestOfAll(const std::vector<double>& values, int work, double resume_share, bool running) {
  const auto hours_in_all = static_cast<int>(values.size());
  double least = HUGE_VAL;
  for (unsigned chosen = 0; chosen < (1U << hours_in_all); ++chosen) {
    if (__builtin_popcount(chosen) != work) continue;
    double cost = 0;
    bool was_running = running;
    bool begun = running;
    for (int hour = 0; hour < hours_in_all; ++hour) {
      const bool runs = (chosen >> static_cast<unsigned>(hour) & 1U) != 0;
      if (runs) {
        cost += values[static_cast<std::size_t>(hour)];
        if (!was_running && begun) cost += resume_share * values[static_cast<std::size_t>(hour)];
        begun = true;
      }
      was_running = runs;
    }
    least = std::min(least, cost);
  }
  return least;
}

TEST(PausePlannerTest, NoChoiceOfHoursIsCheaper) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> value(-20, 100);
  for (int round = 0; round < 40; ++round) {
    std::vector<double> values(12);
    for (double& v : values) v = value(random);
    PauseRequest request = Hours(4, 12);
    request.begun = request.running = round % 2 == 0;
    request.least_gain = 0;
    const Signal signal = Hourly(values);
    const PausePlan plan = PlanPauses(signal, request).value();
    // Work lies on whole hours where that is best, and may lie better on minutes.
    EXPECT_LE(plan.expected.cost, BestOfAll(values, 4, 0, request.running) + 1e-6) << round;
    EXPECT_NEAR(WorkOf(plan).count(), 4 * 3600, 1e-3);
    EXPECT_LE(plan.spans.back().until, request.finish_by);
    for (std::size_t i = 1; i < plan.spans.size(); ++i)
      EXPECT_GT(plan.spans[i].from, plan.spans[i - 1].until);
  }
}

TEST(PausePlannerTest, TimeIsKeptFreeForARunThatTakesLonger) {
  std::vector<double> values(24, 100);
  values[22] = values[23] = 1;
  PauseRequest request = Hours(2, 24);
  request.left = DurationBelief::Of(hours(2), minutes(15));
  const PausePlan plan = PlanPauses(Hourly(values), request).value();
  EXPECT_LE(plan.spans.back().from + request.left.longest(), request.finish_by);
}

TEST(PausePlannerTest, WithoutTimeItRunsThrough) {
  const PausePlan plan = PlanPauses(Hourly({100, 1, 1, 1}), Hours(4, 4)).value();
  EXPECT_EQ(plan.reason, ShiftReason::kNoTime);
  EXPECT_TRUE(plan.meets_deadline);
  const PausePlan late = PlanPauses(Hourly({100, 1, 1, 1}), Hours(4, 3)).value();
  EXPECT_FALSE(late.meets_deadline);
  ASSERT_EQ(late.spans.size(), 1);
  EXPECT_EQ(late.spans[0].from, kBegin);
}

TEST(PausePlannerTest, WhatIsNotSureIsNotDone) {
  EXPECT_EQ(PlanPauses(Hourly(std::vector<double>(24, 5)), Hours(4, 24)).value().reason,
            ShiftReason::kNothingToGain);
  std::vector<double> values(24, 100);
  values[20] = 80;
  EXPECT_EQ(PlanPauses(Hourly(values, 90), Hours(1, 24)).value().reason, ShiftReason::kUnsure);
}

TEST(PausePlannerTest, RefusesWhatMakesNoSense) {
  PauseRequest request = Hours(1, 4);
  request.block = Seconds(0);
  EXPECT_THAT(PlanPauses(Hourly({1}), request).error().message, HasSubstr("block"));
  request = Hours(1, 4);
  request.finish_by = WallTime::max();
  EXPECT_THAT(PlanPauses(Hourly({1}), request).error().message, HasSubstr("need a time"));
}

}  // namespace pause_planner_test
}  // namespace zeus
