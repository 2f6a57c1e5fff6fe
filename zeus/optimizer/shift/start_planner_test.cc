#include "zeus/optimizer/shift/start_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace zeus {
namespace start_planner_test {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;

constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);

// A daily swing between 100 and 200, least at noon.
double Swing(double hour) { return 150 + 50 * std::cos(hour / 24 * 2 * std::numbers::pi); }

Signal SwingSignal(int steps_per_hour = 2, int days = 3, double relative_sigma = 0) {
  std::vector<Signal::Step> steps;
  for (int i = 0; i < days * 24 * steps_per_hour; ++i) {
    const double value = Swing((i + 0.5) / steps_per_hour);
    steps.push_back({kBegin + minutes(60 / steps_per_hour) * i, value, relative_sigma * value});
  }
  return Signal::Create(steps, kBegin + hours(24 * days)).value();
}

Signal Flat(double value, double sigma = 0) {
  return Signal::Create({{kBegin, value, sigma}}, kBegin + hours(72)).value();
}

ShiftRequest SixHours(WallTime now = kBegin) {
  return {.now = now,
          .duration = DurationBelief::Of(hours(6), Seconds(0)),
          .power = {{.share = 1, .power = Watts(1000)}},
          .finish_by = now + hours(24),
          .margin = Seconds(0)};
}

double CostFrom(const Signal& signal, const ShiftRequest& request, WallTime start) {
  return signal.Cost(PiecesOf(request.power, start, request.duration.mean()));
}

TEST(StartPlannerTest, ARunOfSixHoursLiesAroundTheCleanestMoment) {
  const auto plan = PlanStart(SwingSignal(), SixHours());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan.value().start, kBegin + hours(9));
  EXPECT_EQ(plan.value().reason, ShiftReason::kGain);
  EXPECT_TRUE(plan.value().meets_deadline);
  EXPECT_FALSE(plan.value().assumed);
}

TEST(StartPlannerTest, NoStartOfADenseSearchIsCheaper) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> value(-50, 400);
  for (int round = 0; round < 50; ++round) {
    std::vector<Signal::Step> steps;
    WallTime time = kBegin;
    while (time < kBegin + hours(40)) {
      steps.push_back({time, value(random)});
      time += minutes(15 + static_cast<int>(random() % 120));
    }
    const Signal signal = Signal::Create(steps, kBegin + hours(48)).value();
    ShiftRequest request = SixHours();
    request.duration = DurationBelief::Of(minutes(211), Seconds(0));
    request.power = {{0.2, Watts(300)}, {0.7, Watts(1200)}, {0.1, Watts(500)}};
    request.least_gain = 0;
    const StartPlan plan = PlanStart(signal, request).value();
    double least = HUGE_VAL;
    for (WallTime start = kBegin; start <= plan.latest; start += minutes(1))
      least = std::min(least, CostFrom(signal, request, start));
    EXPECT_LE(plan.expected.cost, least + 1e-9) << round;
    EXPECT_NEAR(plan.expected.cost, CostFrom(signal, request, plan.considered), 1e-9);
  }
}

TEST(StartPlannerTest, AFlatSignalMeansNow) {
  const StartPlan plan = PlanStart(Flat(300), SixHours()).value();
  EXPECT_EQ(plan.start, kBegin);
  EXPECT_EQ(plan.reason, ShiftReason::kNothingToGain);
  EXPECT_EQ(plan.expected.gain(), 0);
}

TEST(StartPlannerTest, AGainWithinItsErrorIsNotWaitedFor) {
  const StartPlan sure = PlanStart(SwingSignal(2, 3, 0.05), SixHours()).value();
  EXPECT_EQ(sure.reason, ShiftReason::kGain);
  EXPECT_GT(sure.expected.gain_sigma, 0);
  const StartPlan unsure = PlanStart(SwingSignal(2, 3, 0.6), SixHours()).value();
  EXPECT_EQ(unsure.reason, ShiftReason::kUnsure);
  EXPECT_EQ(unsure.start, kBegin);
  EXPECT_EQ(unsure.considered, kBegin + hours(9));
}

TEST(StartPlannerTest, NothingStartsLaterThanTheDeadlineAllows) {
  ShiftRequest request = SixHours();
  request.duration = DurationBelief::Of(hours(6), minutes(30));
  request.margin = minutes(10);
  request.finish_by = kBegin + hours(14);
  const StartPlan plan = PlanStart(SwingSignal(), request).value();
  EXPECT_EQ(plan.start, plan.latest);
  EXPECT_EQ(plan.latest, LatestStart(request));
  EXPECT_LE(plan.start + hours(6) + minutes(10), request.finish_by);
  EXPECT_LT(plan.start, kBegin + hours(7));
}

TEST(StartPlannerTest, ADeadlineThatCannotBeMetMeansNowAndSaysSo) {
  ShiftRequest request = SixHours();
  request.finish_by = kBegin + hours(5);
  const StartPlan plan = PlanStart(SwingSignal(), request).value();
  EXPECT_EQ(plan.start, kBegin);
  EXPECT_EQ(plan.reason, ShiftReason::kNoTime);
  EXPECT_FALSE(plan.meets_deadline);
}

TEST(StartPlannerTest, WaitingHasItsOwnBound) {
  ShiftRequest request = SixHours();
  request.finish_by = WallTime::max();
  request.latest_start = kBegin + hours(3);
  EXPECT_EQ(PlanStart(SwingSignal(), request).value().start, kBegin + hours(3));
  request.not_before = kBegin + hours(2);
  EXPECT_EQ(PlanStart(Flat(1), request).value().start, kBegin + hours(2));
}

TEST(StartPlannerTest, ANegativePriceIsWorthWaitingFor) {
  std::vector<Signal::Step> steps{
      {kBegin, 0.02}, {kBegin + hours(5), -0.1}, {kBegin + hours(12), 0.3}};
  const Signal signal = Signal::Create(steps, kBegin + hours(48)).value();
  const StartPlan plan = PlanStart(signal, SixHours()).value();
  EXPECT_EQ(plan.start, kBegin + hours(5));
  EXPECT_LT(plan.expected.cost, 0);
}

TEST(StartPlannerTest, WhereTheForecastEndsTheLastDayIsAssumed) {
  Signal signal = SwingSignal(2, 1);  // One day, and it is evening.
  ShiftRequest request = SixHours(kBegin + hours(20));
  const StartPlan plan = PlanStart(signal, request).value();
  EXPECT_TRUE(plan.assumed);
  EXPECT_GT(plan.expected.gain_sigma, 0);
}

TEST(StartPlannerTest, AForecastOfAnotherTimeIsNoForecast) {
  EXPECT_THAT(PlanStart(SwingSignal(2, 1), SixHours(kBegin + hours(30))).error().message,
              HasSubstr("the forecast ended at 2026-03-02T00:00:00Z, and it is "
                        "2026-03-02T06:00:00Z: is it old, or is a clock wrong?"));
  EXPECT_THAT(PlanStart(SwingSignal(), SixHours(kBegin - hours(2))).error().message,
              HasSubstr("begins only at"));
  EXPECT_TRUE(PlanStart(SwingSignal(), SixHours(kBegin - minutes(40))).ok());
}

TEST(StartPlannerTest, RefusesWhatMakesNoSense) {
  const auto mistake = [](auto change) {
    ShiftRequest request = SixHours();
    change(request);
    const auto plan = PlanStart(SwingSignal(), request);
    return plan.ok() ? "" : plan.error().message;
  };
  EXPECT_THAT(mistake([](auto& r) { r.duration = DurationBelief::Of(Seconds(0), Seconds(0)); }),
              HasSubstr("greater than 0"));
  EXPECT_THAT(mistake([](auto& r) { r.duration = DurationBelief::Of(Seconds(NAN), Seconds(0)); }),
              HasSubstr("greater than 0"));
  EXPECT_THAT(mistake([](auto& r) { r.power.clear(); }), HasSubstr("power"));
  EXPECT_THAT(mistake([](auto& r) { r.power = {{1, Watts(-1)}}; }), HasSubstr("makes no sense"));
  EXPECT_THAT(mistake([](auto& r) { r.power = {{0.5, Watts(1)}}; }), HasSubstr("whole length"));
  EXPECT_THAT(mistake([](auto& r) { r.margin = Seconds(-1); }), HasSubstr("margin"));
}

// Between the time that the plan keeps free and the deadline lies the margin, whatever is drawn.
TEST(StartPlannerTest, ThousandsOfRunsAllEndInTime) {
  std::mt19937_64 random(11);
  const Signal signal = SwingSignal(2, 6);
  std::normal_distribution<double> length(6 * 3600, 900);
  int missed = 0;
  for (int run = 0; run < 3000; ++run) {
    ShiftRequest request = SixHours(kBegin + minutes(random() % (48 * 60)));
    request.duration = DurationBelief::Of(hours(6), minutes(15));
    request.finish_by = request.now + minutes(60 * 8 + random() % (60 * 30));
    request.margin = minutes(5);
    const StartPlan plan = PlanStart(signal, request).value();
    const Seconds drawn(length(random));
    if (plan.meets_deadline && Seconds(request.finish_by - plan.start) < drawn) ++missed;
  }
  EXPECT_EQ(missed, 0);
}

}  // namespace start_planner_test
}  // namespace zeus
