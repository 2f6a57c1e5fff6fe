#include "zeus/optimizer/shift/start_waiter.h"

#include <gtest/gtest.h>

namespace zeus {
namespace start_waiter_test {

using std::chrono::hours;
using std::chrono::minutes;

constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);

Result<StartPlan> PlanFor(WallTime start, WallTime latest = kBegin + hours(10)) {
  return StartPlan{.start = start, .latest = latest};
}
Result<StartPlan> Gone() { return Error{ErrorCode::kUnavailable, "no answer"}; }

TEST(StartWaiterTest, WaitsInPeriodsAndStartsInTime) {
  StartWaiter waiter;
  EXPECT_EQ(waiter.Decide(kBegin, PlanFor(kBegin + minutes(20))), kBegin + minutes(15));
  EXPECT_EQ(waiter.Decide(kBegin + minutes(15), PlanFor(kBegin + minutes(20))),
            kBegin + minutes(20));
  EXPECT_EQ(waiter.Decide(kBegin + minutes(20), PlanFor(kBegin + minutes(20))), std::nullopt);
}

TEST(StartWaiterTest, WithoutAForecastThePlanStandsUntilItsStart) {
  StartWaiter waiter;
  EXPECT_TRUE(waiter.Decide(kBegin, PlanFor(kBegin + hours(2))));
  EXPECT_TRUE(waiter.Decide(kBegin + hours(1), Gone()));
  EXPECT_EQ(waiter.Decide(kBegin + hours(2), Gone()), std::nullopt);
}

TEST(StartWaiterTest, WithoutAnyPlanItStartsAtOnce) {
  StartWaiter waiter;
  EXPECT_EQ(waiter.Decide(kBegin, Gone()), std::nullopt);
}

TEST(StartWaiterTest, ANewForecastMayMoveTheStartBothWays) {
  StartWaiter waiter;
  EXPECT_TRUE(waiter.Decide(kBegin, PlanFor(kBegin + hours(2))));
  EXPECT_TRUE(waiter.Decide(kBegin + hours(2), PlanFor(kBegin + hours(4))));
  EXPECT_EQ(waiter.Decide(kBegin + hours(3), PlanFor(kBegin + hours(3))), std::nullopt);
}

TEST(StartWaiterTest, NobodyWaitsBehindTheLatestStart) {
  StartWaiter waiter;
  EXPECT_TRUE(waiter.Decide(kBegin, PlanFor(kBegin + hours(9), kBegin + hours(1))));
  EXPECT_EQ(waiter.Decide(kBegin + hours(1), Gone()), std::nullopt);
}

TEST(StartWaiterTest, AClockThatIsSetForwardStartsTheRun) {
  StartWaiter waiter;
  EXPECT_TRUE(waiter.Decide(kBegin, PlanFor(kBegin + hours(5))));
  EXPECT_EQ(waiter.Decide(kBegin + hours(30), Gone()), std::nullopt);
}

}  // namespace start_waiter_test
}  // namespace zeus
