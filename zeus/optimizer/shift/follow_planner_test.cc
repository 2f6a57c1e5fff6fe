#include "zeus/optimizer/shift/follow_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace zeus {
namespace follow_planner_test {

using std::chrono::hours;
using ::testing::HasSubstr;

constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);

Signal Swing(double factor, int days = 4) {
  std::vector<Signal::Step> steps;
  for (int i = 0; i < 24 * days; ++i)
    steps.push_back({kBegin + hours(i),
                     1 + (factor - 1) * (0.5 + 0.5 * std::cos((i + 0.5) / 12 * std::numbers::pi))});
  return Signal::Create(steps, kBegin + hours(24 * days)).value();
}

// The curve of a memory-bound training: the last watts bring little.
std::vector<LimitPoint> Curve() {
  return {{Watts(300), 1.0, Watts(275)},
          {Watts(250), 0.98, Watts(245)},
          {Watts(200), 0.92, Watts(198)},
          {Watts(150), 0.79, Watts(149)},
          {Watts(100), 0.48, Watts(100)}};
}

FollowRequest DayOfWork(double eta = 0.5) {
  return {
      .now = kBegin, .profile = Curve(), .work = 24 * 3600.0, .eta = eta, .max_power = Watts(300)};
}

Seconds LengthOf(const FollowPlan& plan) {
  return plan.spans.back().until - plan.spans.front().from;
}

TEST(FollowPlannerTest, TheLimitIsLowWhilePowerIsDirty) {
  const FollowPlan plan = PlanFollowing(Swing(4), DayOfWork()).value();
  EXPECT_LT(plan.LimitAt(kBegin), plan.LimitAt(kBegin + hours(12)));
  EXPECT_GT(plan.spans.size(), 2);
  EXPECT_NEAR(LengthOf(plan).count(), plan.amounts.time.count(), 1e-3);
}

TEST(FollowPlannerTest, TheSpansDoTheWork) {
  const FollowRequest request = DayOfWork();
  const FollowPlan plan = PlanFollowing(Swing(3), request).value();
  double work = 0;
  for (const auto& span : plan.spans)
    for (const LimitPoint& point : request.profile)
      if (point.limit == span.limit) work += point.rate * Seconds(span.until - span.from).count();
  EXPECT_NEAR(work, request.work, 1);
}

TEST(FollowPlannerTest, NeverWorseThanConstantLimitsOfTheSameTime) {
  std::mt19937_64 random(9);
  std::uniform_real_distribution<double> value(-20, 500);
  std::uniform_real_distribution<double> eta(0, 1);
  for (int round = 0; round < 60; ++round) {
    std::vector<Signal::Step> steps;
    for (int i = 0; i < 72; ++i) steps.push_back({kBegin + hours(i), value(random)});
    const Signal signal = Signal::Create(steps, kBegin + hours(72)).value();
    FollowRequest request = DayOfWork(eta(random));
    const FollowPlan plan = PlanFollowing(signal, request).value();
    EXPECT_LE(plan.amounts.cost,
              plan.constant_in_same_time + 1e-6 * std::abs(plan.constant_in_same_time))
        << round;
  }
}

TEST(FollowPlannerTest, AFlatSignalGivesTheBestConstantLimit) {
  const Signal flat = Signal::Create({{kBegin, 100}}, kBegin + hours(96)).value();
  for (const double eta : {0.0, 0.3, 0.5, 0.8, 1.0}) {
    const FollowPlan plan = PlanFollowing(flat, DayOfWork(eta)).value();
    ASSERT_EQ(plan.spans.size(), 1) << eta;
    EXPECT_EQ(plan.spans[0].limit, plan.best_constant) << eta;
    EXPECT_NEAR(plan.amounts.cost, plan.constant.cost, 1e-6);
  }
}

TEST(FollowPlannerTest, ADeadlineMakesItFaster) {
  FollowRequest request = DayOfWork(1);
  const FollowPlan slow = PlanFollowing(Swing(2), request).value();
  request.finish_by = kBegin + hours(25);
  const FollowPlan fast = PlanFollowing(Swing(2), request).value();
  EXPECT_TRUE(fast.meets_deadline);
  EXPECT_LE(fast.amounts.time, Seconds(hours(25)));
  EXPECT_GT(slow.amounts.time, fast.amounts.time);
  request.finish_by = kBegin + hours(20);
  const FollowPlan late = PlanFollowing(Swing(2), request).value();
  EXPECT_FALSE(late.meets_deadline);
  EXPECT_EQ(late.spans[0].limit, Watts(300));
  EXPECT_EQ(late.spans.size(), 1);
}

TEST(FollowPlannerTest, RefusesWhatMakesNoSense) {
  const auto mistake = [](auto change) {
    FollowRequest request = DayOfWork();
    change(request);
    const auto plan = PlanFollowing(Swing(2), request);
    return plan.ok() ? "" : plan.error().message;
  };
  EXPECT_THAT(mistake([](auto& r) { r.profile.clear(); }), HasSubstr("no profile"));
  EXPECT_THAT(mistake([](auto& r) { r.profile[1].rate = NAN; }), HasSubstr("at 250 W"));
  EXPECT_THAT(mistake([](auto& r) { r.work = 0; }), HasSubstr("no work"));
  EXPECT_THAT(mistake([](auto& r) { r.eta = 2; }), HasSubstr("eta"));
  EXPECT_THAT(mistake([](auto& r) { r.now = kBegin + hours(1000); }), HasSubstr("ended"));
}

}  // namespace follow_planner_test
}  // namespace zeus
