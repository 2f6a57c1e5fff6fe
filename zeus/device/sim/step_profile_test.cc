#include <gtest/gtest.h>

#include "zeus/device/sim/power_history.h"

namespace zeus::sim {
namespace step_profile_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

constexpr PowerRange kBetween{.min = 50_W, .max = 400_W};

TEST(StepProfileTest, ComputesThenWaits) {
  const StepProfile profile = TwoLevelProfile(200_W, kBetween, 100ms, 0.75);
  EXPECT_EQ(profile.high, 250_W);
  EXPECT_EQ(profile.low, 50_W);
  EXPECT_EQ(profile.PowerAt(74ms), 250_W);
  EXPECT_EQ(profile.PowerAt(76ms), 50_W);
  EXPECT_EQ(profile.PowerAt(101ms), 250_W);
}

TEST(StepProfileTest, KeepsItsMeanWhenTheComputeLevelIsCapped) {
  const StepProfile profile = TwoLevelProfile(350_W, kBetween, 100ms, 0.6);
  EXPECT_EQ(profile.high, 400_W);
  EXPECT_NEAR(profile.low.value(), 275.0, 1e-9);
  EXPECT_NEAR(profile.mean().value(), 350.0, 1e-9);
}

TEST(StepProfileTest, EnergyOfAMillionStepsIsTheirMeanTimesTheirTime) {
  const StepProfile profile = TwoLevelProfile(200_W, kBetween, 137ms, 0.7);
  const Seconds time = 137ms * 1e6;
  EXPECT_NEAR(profile.EnergyUntil(time) / (200_W * time), 1.0, 1e-14);
}

TEST(StepProfileTest, EnergyFollowsTheLevelsInsideAStep) {
  StepProfile profile = TwoLevelProfile(200_W, kBetween, 100ms, 0.75);
  EXPECT_NEAR(profile.EnergyUntil(75ms).value(), 18.75, 1e-12);
  EXPECT_NEAR(profile.EnergyUntil(100ms).value(), 20.0, 1e-12);
  profile.phase = 0.5;
  EXPECT_NEAR(profile.EnergyUntil(25ms).value(), 6.25, 1e-12);
  EXPECT_NEAR(profile.EnergyUntil(50ms).value(), 7.5, 1e-12);
  EXPECT_NEAR(profile.PositionAt(75ms), 0.25, 1e-12);
}

TEST(StepProfileTest, AStepWithoutAGapIsConstant) {
  EXPECT_TRUE(TwoLevelProfile(200_W, kBetween, 100ms, 1.0).constant());
  EXPECT_TRUE(TwoLevelProfile(400_W, kBetween, 100ms, 0.5).constant());
  EXPECT_EQ(ConstantProfile(120_W).EnergyUntil(10s), 1200_J);
}

}  // namespace step_profile_test
}  // namespace zeus::sim
