#include "apps/zeus/train/epoch_arrivals.h"

#include <gtest/gtest.h>

namespace zeus::cli {
namespace epoch_arrivals_test {

using namespace std::chrono_literals;

class EpochArrivalsTest : public ::testing::Test {
 protected:
  EpochTiming After(Seconds time, std::size_t epochs = 1, Seconds blind = 20ms) {
    clock_.SleepFor(time);
    return arrivals_.Judge(epochs, clock_.Now(), blind);
  }

  VirtualClock clock_;
  EpochArrivals arrivals_{clock_.Now()};
};

TEST_F(EpochArrivalsTest, EpochsThatComeOneByOneAreKnown) {
  EXPECT_EQ(After(5s), EpochTiming::kKnown);
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
}

TEST_F(EpochArrivalsTest, EpochsThatAreReadTogetherAreALumpAndSoIsItsRest) {
  EXPECT_EQ(After(20s, 10), EpochTiming::kLumped);
  EXPECT_EQ(After(1ms), EpochTiming::kTooSoon);
  EXPECT_EQ(After(1ms, 3), EpochTiming::kTooSoon);
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
}

TEST_F(EpochArrivalsTest, WhoWasStoppedDoesNotKnowWhenAnEpochEnded) {
  EXPECT_EQ(After(2s), EpochTiming::kKnown);
  EXPECT_EQ(After(3s, 1, 1500ms), EpochTiming::kLumped);
}

TEST_F(EpochArrivalsTest, AFirstEpochThatCompilesDoesNotMakeTheOthersTooShort) {
  EXPECT_EQ(After(600s), EpochTiming::kKnown);
  EXPECT_EQ(After(3s), EpochTiming::kKnown);
}

}  // namespace epoch_arrivals_test
}  // namespace zeus::cli
