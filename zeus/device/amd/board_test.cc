#include "zeus/device/amd/board.h"

#include <gtest/gtest.h>

namespace zeus::amd {
namespace board_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

class StillCounterTest : public ::testing::Test {
 protected:
  // One reading, as AmdGpu makes it.
  bool StaleAfter(Seconds wait, std::uint64_t ticks, std::optional<Watts> power) {
    clock_.Advance(wait);
    if (!still_.Moved(clock_.Now(), ticks)) still_.SawPower(clock_.Now(), power);
    return still_.stale();
  }

  VirtualClock clock_;
  StillCounter still_;
};

TEST_F(StillCounterTest, ACounterThatMovesIsNeverStale) {
  for (std::uint64_t ticks = 0; ticks < 10; ++ticks) EXPECT_FALSE(StaleAfter(10s, ticks, 300_W));
}

TEST_F(StillCounterTest, StandingStillForMoreThanASecondUnderLoadIsStale) {
  EXPECT_FALSE(StaleAfter(0s, 7, 300_W));
  EXPECT_FALSE(StaleAfter(500ms, 7, 300_W));
  EXPECT_FALSE(StaleAfter(500ms, 7, 300_W));
  EXPECT_TRUE(StaleAfter(1ms, 7, 300_W));
  EXPECT_EQ(still_.spells(), 1U);
}

TEST_F(StillCounterTest, AWindowOfTwoReadingsIsEnough) {
  EXPECT_FALSE(StaleAfter(0s, 7, 300_W));
  EXPECT_TRUE(StaleAfter(1h, 7, 300_W));
}

TEST_F(StillCounterTest, AnIdleBoardMayStandStill) {
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(StaleAfter(1s, 7, 9_W));
}

TEST_F(StillCounterTest, UnknownPowerProvesNothing) {
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(StaleAfter(1s, 7, std::nullopt));
}

TEST_F(StillCounterTest, APauseOfTheLoadStartsTheWaitAgain) {
  StaleAfter(0s, 7, 300_W);
  StaleAfter(900ms, 7, 300_W);
  StaleAfter(900ms, 7, 5_W);
  EXPECT_FALSE(StaleAfter(900ms, 7, 300_W));
  EXPECT_TRUE(StaleAfter(200ms, 7, 300_W));
}

TEST_F(StillCounterTest, ItStaysStaleUntilTheCounterMoves) {
  for (int i = 0; i < 4; ++i) StaleAfter(1s, 7, 300_W);
  EXPECT_TRUE(StaleAfter(1s, 7, 5_W));
  EXPECT_TRUE(StaleAfter(1s, 7, std::nullopt));
  EXPECT_FALSE(StaleAfter(1s, 8, 300_W));
  EXPECT_EQ(still_.spells(), 1U);
}

}  // namespace board_test
}  // namespace zeus::amd
