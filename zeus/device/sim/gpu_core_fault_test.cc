#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace {

using namespace zeus::literals;
using namespace std::chrono_literals;
using testing::Draw;
using testing::Model;

TEST(FaultTest, HoldsFromItsTimeOnUntilItIsCleared) {
  GpuCore core(Model("A100"), 1, 0);
  core.InjectFault({.kind = FaultKind::kLost, .at = 10s});
  core.AdvanceTo(9.9s);
  EXPECT_FALSE(core.fault(FaultKind::kLost).has_value());
  core.AdvanceTo(10s);
  EXPECT_TRUE(core.fault(FaultKind::kLost).has_value());
  EXPECT_FALSE(core.fault(FaultKind::kSlowCall).has_value());
  core.ClearFaults();
  EXPECT_FALSE(core.fault(FaultKind::kLost).has_value());
}

TEST(FaultTest, TheLastOfAKindHolds) {
  GpuCore core(Model("A100"), 1, 0);
  core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 300_W, .at = 20s});
  core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 200_W, .at = 10s});
  core.AdvanceTo(15s);
  EXPECT_EQ(core.power_limit().enforced, 200_W);
  core.AdvanceTo(25s);
  EXPECT_EQ(core.power_limit().enforced, 300_W);
}

TEST(FaultTest, AFullScheduleForgetsTheEarliest) {
  GpuCore core(Model("A100"), 1, 0);
  core.InjectFault({.kind = FaultKind::kLost, .at = -1s});
  for (int i = 0; i < 16; ++i) core.InjectFault({.kind = FaultKind::kSlowCall, .delay = 1ms * i});
  EXPECT_FALSE(core.fault(FaultKind::kLost).has_value());
  EXPECT_NEAR(core.fault(FaultKind::kSlowCall)->delay.count(), 15e-3, 1e-12);
}

TEST(FaultTest, ADriverReloadRestartsTheCounterNearZero) {
  GpuCore core(Model("A100"), 1, 0);
  core.InjectFault({.kind = FaultKind::kDriverReload, .at = 60s});
  core.AdvanceTo(59.9s);
  EXPECT_GT(core.counter_millijoules().value(), 2'500'000U);
  core.AdvanceTo(60.2s);
  EXPECT_LT(core.counter_millijoules().value(), 50'000U);
  core.AdvanceTo(120s);
  EXPECT_GT(core.counter_millijoules().value(), 2'500'000U);
  EXPECT_LT(core.counter_millijoules().value(), 3'500'000U);
  EXPECT_FALSE(core.fault(FaultKind::kDriverReload).has_value());
  EXPECT_NEAR(core.exact_energy().value(), 6000.0, 1e-6);
}

TEST(FaultTest, ADriverReloadForgetsWhatProgramsSet) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  ASSERT_TRUE(core.LockClock(ClockDomain::kGraphics, {.min = 600_MHz, .max = 600_MHz}).ok());
  core.SetPersistence(Persistence::kOff);
  core.AdvanceTo(10s);
  ASSERT_LE(core.exact_power(), 200_W);
  core.InjectFault({.kind = FaultKind::kDriverReload});

  EXPECT_EQ(core.power_limit().requested, 400_W);
  EXPECT_EQ(core.power_limit().enforced, 400_W);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 1410_MHz);
  EXPECT_EQ(core.persistence(), Persistence::kOn);
  EXPECT_GT(core.exact_power(), 380_W);  // The load goes on.
}

TEST(FaultTest, AChangeOnItsWayDoesNotSurviveADriverReload) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  core.InjectFault({.kind = FaultKind::kDriverReload});
  core.AdvanceTo(1s);
  EXPECT_EQ(core.power_limit().requested, 400_W);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  EXPECT_GT(core.exact_power(), 380_W);
}

TEST(FaultTest, AFrozenCounterStandsStillUntilItIsCleared) {
  GpuCore core(Model("A100"), 1, 0);
  core.AdvanceTo(60s);
  core.InjectFault({.kind = FaultKind::kCounterFrozen, .at = 70s});
  core.AdvanceTo(70s);
  const std::uint64_t frozen = core.counter_millijoules().value();
  EXPECT_GT(frozen, 3'000'000U);
  core.AdvanceTo(1h);
  EXPECT_EQ(core.counter_millijoules().value(), frozen);
  core.ClearFaults();
  core.AdvanceTo(1h + 1s);
  EXPECT_GT(core.counter_millijoules().value(), 100'000'000U);
}

TEST(FaultTest, PowerReadsAsUnavailable) {
  GpuCore core(Model("A100"), 1, 0);
  core.InjectFault({.kind = FaultKind::kPowerUnavailable});
  EXPECT_EQ(core.power(PowerKind::kInstant).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(core.counter_millijoules().ok());
}

TEST(FaultTest, AnOutOfBandCapBindsAtOnce) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  core.AdvanceTo(10s);
  core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 150_W});
  EXPECT_EQ(core.exact_power(), 150_W);
  EXPECT_TRUE(core.throttle().power_cap);
  EXPECT_EQ(core.power_limit().requested, 400_W);
  EXPECT_EQ(core.power_limit().enforced, 150_W);
  core.ClearFaults();
  EXPECT_GT(core.exact_power(), 380_W);
}

TEST(FaultTest, SomebodyElseResetsTheClocks) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(300_W)).ok());
  ASSERT_TRUE(core.LockClock(ClockDomain::kGraphics, {.min = 600_MHz, .max = 600_MHz}).ok());
  core.InjectFault({.kind = FaultKind::kClockReset, .at = 5s});
  core.AdvanceTo(4.9s);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 600_MHz);
  core.AdvanceTo(5s);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 1410_MHz);
}

TEST(FaultTest, HitsTheStatedShareOfCallsTheSameWayForASeed) {
  const auto pattern = [](std::uint64_t seed) {
    GpuCore core(Model("A100"), seed, 0);
    core.InjectFault({.kind = FaultKind::kLost, .probability = 0.3});
    std::string hits;
    for (int i = 0; i < 5000; ++i) hits += core.DrawFault(FaultKind::kLost) ? 'x' : '.';
    return hits;
  };
  const std::string hits = pattern(1);
  EXPECT_NEAR(static_cast<double>(std::count(hits.begin(), hits.end(), 'x')) / 5000.0, 0.3, 0.03);
  EXPECT_EQ(hits, pattern(1));
  EXPECT_NE(hits, pattern(2));
}

}  // namespace
}  // namespace zeus::sim
