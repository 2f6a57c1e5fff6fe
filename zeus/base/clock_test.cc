#include "zeus/base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "zeus/base/stepped_clock.h"

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

using ::testing::ElementsAre;

TEST(SteppedClockTest, TasksRunAtTheirTimesWhileSomebodySleeps) {
  SteppedClock clock;
  std::vector<double> slow, fast;
  clock.Run([&] {
    slow.push_back(clock.Now().time_since_epoch().count());
    return clock.Now() + 4s;
  });
  clock.Run([&] {
    fast.push_back(clock.Now().time_since_epoch().count());
    return clock.Now() + 3s;
  });

  clock.Advance(9s);

  EXPECT_THAT(slow, ElementsAre(0, 4, 8));
  EXPECT_THAT(fast, ElementsAre(0, 3, 6, 9));
  EXPECT_EQ(clock.Now(), TimePoint(9s));
}

TEST(SteppedClockTest, ATaskThatSleepsMovesTimeAndStartsNobody) {
  SteppedClock clock;
  int calls = 0;
  clock.Run([&] {
    ++calls;
    clock.SleepFor(5s);
    return clock.Now() + 1s;
  });
  EXPECT_EQ(clock.Now(), TimePoint(5s));

  clock.Advance(1s);

  EXPECT_EQ(calls, 2);
  EXPECT_EQ(clock.Now(), TimePoint(11s));
}

TEST(SteppedClockTest, ATaskThatWantsToRunAtOnceDoesNotStopTime) {
  SteppedClock clock;
  clock.Run([&] { return clock.Now(); });

  clock.Advance(1ms);

  EXPECT_EQ(clock.Now(), TimePoint(1ms));
}

}  // namespace clock_test
}  // namespace zeus
