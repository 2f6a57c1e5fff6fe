#include "zeus/base/stepped_clock.h"

#include <gmock/gmock.h>

#include <vector>

namespace zeus {
namespace stepped_clock_test {

using namespace std::chrono_literals;
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

}  // namespace stepped_clock_test
}  // namespace zeus
