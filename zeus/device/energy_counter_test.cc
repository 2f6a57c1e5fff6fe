#include "zeus/device/energy_counter.h"

#include <gtest/gtest.h>

namespace zeus {
namespace energy_counter_test {

TEST(EnergyCounterTest, StartsAtTheRawValue) {
  EnergyCounter counter;
  EXPECT_EQ(counter.Advance(1000).ticks, 1000U);
  EXPECT_EQ(counter.Advance(1500).ticks, 1500U);
}

TEST(EnergyCounterTest, WrapAroundLosesNothing) {
  constexpr std::uint64_t kLargest = 262143328850;
  EnergyCounter counter(kLargest + 1);
  const auto before = counter.Advance(kLargest - 10);
  const auto after = counter.Advance(5);
  EXPECT_EQ(after.ticks - before.ticks, 16U);  // 10 up to the largest value, 1 to zero, 5 more.
  EXPECT_EQ(after.epoch, before.epoch);
}

TEST(EnergyCounterTest, ADecreaseOfAWideCounterStartsANewEpoch) {
  EnergyCounter counter;
  counter.Advance(1'000'000);
  const auto restarted = counter.Advance(300);
  EXPECT_EQ(restarted.epoch, 1U);
  EXPECT_EQ(restarted.ticks, 1'000'300U);
}

TEST(EnergyCounterTest, AnAnnouncedEpochCountsFromZeroEvenIfTheValueIsHigher) {
  EnergyCounter counter;
  counter.Advance(100);
  counter.BeginEpoch();
  const auto restarted = counter.Advance(250);
  EXPECT_EQ(restarted.epoch, 1U);
  EXPECT_EQ(restarted.ticks, 350U);
}

TEST(EnergyCounterTest, AnEpochBeforeTheFirstReadingIsNotNew) {
  EnergyCounter counter;
  counter.BeginEpoch();
  EXPECT_EQ(counter.Advance(7).epoch, 0U);
}

}  // namespace energy_counter_test
}  // namespace zeus
