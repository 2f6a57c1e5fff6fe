#include "zeus/base/clock.h"

#include <gtest/gtest.h>

namespace zeus {
namespace clock_test {

using namespace std::chrono_literals;

TEST(VirtualClockTest, ASleepIsAJump) {
  VirtualClock clock;
  const TimePoint start = clock.Now();
  clock.SleepFor(24h * 7);
  EXPECT_EQ(clock.Now() - start, 24h * 7);
}

TEST(VirtualClockTest, NeverMovesBack) {
  VirtualClock clock;
  clock.Advance(10s);
  clock.SleepUntil(TimePoint(Seconds(3)));
  EXPECT_EQ(clock.Now(), TimePoint(Seconds(10)));
}

TEST(VirtualClockTest, WallTimeFollowsMonotonicTime) {
  VirtualClock clock;
  const WallTime start = clock.WallNow();
  clock.Advance(90s);
  EXPECT_EQ(clock.WallNow() - start, 90s);
}

TEST(SystemClockTest, SleepsAtLeastUntilTheDeadline) {
  SystemClock clock;
  const TimePoint deadline = clock.Now() + 1ms;
  clock.SleepUntil(deadline);
  EXPECT_GE(clock.Now(), deadline);
}

}  // namespace clock_test
}  // namespace zeus
