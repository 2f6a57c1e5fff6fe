#include "zeus/device/sim/power_history.h"

#include <gtest/gtest.h>

namespace zeus::sim {
namespace power_history_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

Regime Plain(Seconds start, Watts power) {
  return {.start = start, .profile = ConstantProfile(power)};
}

TEST(PowerHistoryTest, AddsUpTheRegimesInAWindow) {
  PowerHistory history(50_W);
  history.Push(Plain(0s, 100_W), 1s);
  history.Push(Plain(1s, 200_W), 2s);
  EXPECT_NEAR(history.EnergyBetween(900ms, 1100ms).value(), 30.0, 1e-9);
  EXPECT_NEAR(history.EnergyBetween(1200ms, 2s).value(), 160.0, 1e-9);
}

TEST(PowerHistoryTest, KnowsThePowerBeforeItsTime) {
  PowerHistory history(50_W);
  EXPECT_NEAR(history.EnergyBetween(-1s, 0s).value(), 50.0, 1e-12);
  history.Push(Plain(0s, 100_W), 200ms);
  EXPECT_NEAR(history.EnergyBetween(-800ms, 200ms).value(), 60.0, 1e-9);
}

TEST(PowerHistoryTest, KeepsTheEnergyOfMoreRegimesThanItHolds) {
  PowerHistory history(50_W);
  Joules pushed(0);
  for (int i = 0; i < 1000; ++i) {
    const Watts power(i % 2 == 0 ? 100.0 : 300.0);
    history.Push(Plain(1ms * i, power), 1ms * (i + 1));
    pushed += power * 1ms;
  }
  EXPECT_NEAR(history.EnergyBetween(0s, 1s) / pushed, 1.0, 1e-12);
  // The newest are still told apart.
  EXPECT_NEAR(history.EnergyBetween(999ms, 1000ms).value(), 0.3, 1e-9);
  EXPECT_NEAR(history.EnergyBetween(998ms, 999ms).value(), 0.1, 1e-9);
}

TEST(EnergySumTest, KeepsWhatRoundingWouldLose) {
  EnergySum sum;
  sum.Add(1e9_J);
  for (int i = 0; i < 1000000; ++i) sum.Add(1e-8_J);
  sum.Add(Joules(-1e9));
  EXPECT_NEAR(sum.Total().value(), 1e-2, 1e-12);
}

}  // namespace power_history_test
}  // namespace zeus::sim
