#include "zeus/optimizer/power_limit/savings.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace zeus {
namespace savings_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

Profile TwoPoints() {
  Profile profile;
  profile.points = {{.setting = 300_W,
                     .steps = 40,
                     .time_per_step = 1s,
                     .time_sigma = 1ms,
                     .energy_per_step = 280_J,
                     .energy_sigma = 2_J},
                    {.setting = 200_W,
                     .steps = 40,
                     .time_per_step = Seconds(1.1),
                     .time_sigma = 2ms,
                     .energy_per_step = 210_J,
                     .energy_sigma = 1_J}};
  return profile;
}

TEST(SavingsTest, StepsAreMovedAndTheRestStays) {
  const std::array<std::int64_t, 2> steps{900, 100};
  const JobUse used{.time = 1500s, .energy = 300'000_J, .energy_sigma = 9'000_J};

  const JobUse slow = UseAtPoint(used, TwoPoints(), steps, 1);

  EXPECT_NEAR(slow.time.count(), 1500 + 900 * 0.1, 1e-9);
  EXPECT_NEAR(slow.energy.value(), 300'000 - 900 * 70, 1e-6);
  EXPECT_NEAR(slow.time_sigma.count(), 900 * std::hypot(1e-3, 2e-3), 1e-9);
  EXPECT_NEAR(slow.energy_sigma.value(),
              std::hypot(9'000 * 237.0 / 300, 900 * std::hypot(2.0, 1.0)), 1e-6);

  const JobUse fast = UseAtPoint(used, TwoPoints(), steps, 0);
  EXPECT_NEAR(fast.time.count(), 1500 - 100 * 0.1, 1e-9);
  EXPECT_NEAR(fast.energy.value(), 300'000 + 100 * 70, 1e-6);
}

TEST(SavingsTest, AChangeIsThatOfItsSteps) {
  const JobUse change = ChangeBetween(TwoPoints(), 1000, 0, 1);
  EXPECT_NEAR(change.time.count(), 100, 1e-9);
  EXPECT_NEAR(change.energy.value(), -70'000, 1e-6);
  EXPECT_NEAR(change.energy_sigma.value(), 1000 * std::hypot(2.0, 1.0), 1e-6);
  EXPECT_EQ(ChangeBetween(TwoPoints(), 1000, 1, 1).energy_sigma, 0_J);
}

TEST(SavingsTest, AJobThatRanThereAllTheTimeUsedWhatItUsed) {
  const std::array<std::int64_t, 2> steps{0, 1000};
  const JobUse used{.time = 1500s, .energy = 300'000_J, .energy_sigma = 9'000_J};
  const JobUse same = UseAtPoint(used, TwoPoints(), steps, 1);
  EXPECT_EQ(same.time, used.time);
  EXPECT_EQ(same.energy, used.energy);
  EXPECT_EQ(same.energy_sigma, used.energy_sigma);
}

}  // namespace savings_test
}  // namespace zeus
