#include <gtest/gtest.h>

#include <cmath>

#include "zeus/device/sim/power_history.h"

namespace zeus::sim {
namespace thermal_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

constexpr ThermalSpec kSpec{.ambient = 25_degC,
                            .kelvin_per_watt = 0.2,
                            .time_constant = 30s,
                            .leakage_watts_per_kelvin = 0.5,
                            .slowdown = 87_degC,
                            .release = 84_degC};

ThermalPath WithoutLeakage(Celsius start, Watts power) {
  return Heat(kSpec, kSpec.ambient, start, power, Leakage::kInsideLimit);
}

ThermalPath WithLeakage(Celsius ambient, Celsius start, Watts power) {
  return Heat(kSpec, ambient, start, power, Leakage::kFollowsTemperature);
}

TEST(ThermalPathTest, SettlesAtAmbientPlusResistanceTimesPower) {
  const ThermalPath path = WithoutLeakage(25_degC, 200_W);
  EXPECT_NEAR(path.TemperatureAt(1h).value(), 65.0, 1e-9);
}

TEST(ThermalPathTest, CoversTwoThirdsOfTheWayInOneTimeConstant) {
  const ThermalPath path = WithoutLeakage(25_degC, 200_W);
  EXPECT_NEAR(path.TemperatureAt(30s).value(), 25.0 + 40.0 * (1.0 - std::exp(-1.0)), 1e-9);
}

TEST(ThermalPathTest, AColdBoardLeaksLessThanASettledOne) {
  const ThermalPath path = WithLeakage(25_degC, 25_degC, 200_W);
  EXPECT_NEAR(path.LeakageAt(0s).value(), -20.0, 1e-9);
  EXPECT_NEAR(path.LeakageAt(1h).value(), 0.0, 1e-9);
  EXPECT_NEAR(path.TemperatureAt(1h).value(), 65.0, 1e-9);
}

TEST(ThermalPathTest, AHotRoomRaisesPowerAndThatRaisesTemperature) {
  const ThermalPath path = WithLeakage(35_degC, 35_degC, 200_W);
  // x = 10 K + R * L * x, so x = 10 / 0.9
  EXPECT_NEAR(path.TemperatureAt(1h).value(), 65.0 + 10.0 / 0.9, 1e-9);
  EXPECT_NEAR(path.LeakageAt(1h).value(), 5.0 / 0.9, 1e-9);
}

TEST(ThermalPathTest, ObeysItsDifferentialEquation) {
  const ThermalPath path = WithLeakage(35_degC, 30_degC, 200_W);
  for (const Seconds time : {Seconds(0.5), Seconds(10), Seconds(77)}) {
    const double slope =
        (path.TemperatureAt(time + 1ms) - path.TemperatureAt(time - 1ms)).value() / 2e-3;
    const double power = 200.0 + path.LeakageAt(time).value();
    const double driven = (35.0 + 0.2 * power - path.TemperatureAt(time).value()) / 30.0;
    EXPECT_NEAR(slope, driven, 1e-7);
  }
}

TEST(ThermalPathTest, LeakageEnergyIsTheIntegralOfLeakage) {
  const ThermalPath path = WithLeakage(35_degC, 30_degC, 200_W);
  constexpr int kSlices = 100000;
  const Seconds slice = 60s / static_cast<double>(kSlices);
  Joules integral(0);
  for (int i = 0; i < kSlices; ++i) integral += path.LeakageAt(slice * (i + 0.5)) * slice;
  EXPECT_NEAR(path.LeakageUntil(60s) / integral, 1.0, 1e-9);
}

TEST(ThermalPathTest, KnowsWhenItCrossesATemperature) {
  const ThermalPath heating = WithLeakage(25_degC, 30_degC, 400_W);
  const auto up = heating.TimeToRise(87_degC);
  ASSERT_TRUE(up.has_value());
  EXPECT_NEAR(heating.TemperatureAt(*up).value(), 87.0, 1e-9);
  EXPECT_FALSE(heating.TimeToFall(84_degC).has_value());

  const ThermalPath cooling = WithLeakage(25_degC, 87_degC, 100_W);
  const auto down = cooling.TimeToFall(84_degC);
  ASSERT_TRUE(down.has_value());
  EXPECT_NEAR(cooling.TemperatureAt(*down).value(), 84.0, 1e-9);
  EXPECT_FALSE(cooling.TimeToRise(88_degC).has_value());
}

}  // namespace thermal_test
}  // namespace zeus::sim
