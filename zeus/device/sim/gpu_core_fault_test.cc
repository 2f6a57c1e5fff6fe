#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_fault_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using testing::Draw;
using testing::Model;

TEST(FaultTest, HoldsFromItsTimeOnUntilItIsCleared) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kLost, .at = 10s}).ok());
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
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 300_W, .at = 20s}).ok());
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 200_W, .at = 10s}).ok());
  core.AdvanceTo(15s);
  EXPECT_EQ(core.power_limit().enforced, 200_W);
  core.AdvanceTo(25s);
  EXPECT_EQ(core.power_limit().enforced, 300_W);
}

TEST(FaultTest, AFullScheduleRefusesOneMore) {
  GpuCore core(Model("A100"), 1, 3);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kLost, .at = -1s}).ok());
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kSlowCall, .delay = 1ms * i}).ok());
  }
  const Status refused = core.InjectFault({.kind = FaultKind::kMigEnabled});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused.error().message, "16 faults are scheduled on GPU 3: clear them first");
  EXPECT_TRUE(core.fault(FaultKind::kLost).has_value());
  EXPECT_FALSE(core.fault(FaultKind::kMigEnabled).has_value());
}

TEST(FaultTest, AFaultThatMeansNothingIsRefused) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  GpuCore core(Model("A100"), 1, 0);
  for (const double delay : {-1.0, 60.1, kInfinity, kNan}) {
    const Fault fault{.kind = FaultKind::kSlowCall, .delay = Seconds(delay)};
    EXPECT_FALSE(core.InjectFault(fault).ok()) << delay;
  }
  for (const double cap : {-1.0, 0.0, 1e6, kInfinity, kNan}) {
    const Fault fault{.kind = FaultKind::kOutOfBandCap, .cap = Watts(cap)};
    EXPECT_FALSE(core.InjectFault(fault).ok()) << cap;
  }
  for (const double probability : {0.0, -1.0, 1.1, kNan}) {
    const Fault fault{.kind = FaultKind::kLost, .probability = probability};
    EXPECT_FALSE(core.InjectFault(fault).ok()) << probability;
  }
  EXPECT_FALSE(core.InjectFault({.kind = FaultKind::kMigEnabled, .probability = 0.5}).ok());
  EXPECT_FALSE(core.InjectFault({.kind = FaultKind::kLost, .at = Seconds(kNan)}).ok());
}

TEST(FaultTest, ADriverReloadRestartsTheCounterNearZero) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kDriverReload, .at = 60s}).ok());
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
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kDriverReload}).ok());

  EXPECT_EQ(core.power_limit().requested, 400_W);
  EXPECT_EQ(core.power_limit().enforced, 400_W);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 1410_MHz);
  EXPECT_EQ(core.persistence(), Persistence::kOn);
  EXPECT_GT(core.exact_power(), 380_W);  // The load goes on.
}

TEST(FaultTest, AChangeOnItsWayDoesNotSurviveADriverReload) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kDriverReload}).ok());
  core.AdvanceTo(1s);
  EXPECT_EQ(core.power_limit().requested, 400_W);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  EXPECT_GT(core.exact_power(), 380_W);
}

TEST(FaultTest, AFrozenCounterStandsStillUntilItIsCleared) {
  GpuCore core(Model("A100"), 1, 0);
  core.AdvanceTo(60s);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kCounterFrozen, .at = 70s}).ok());
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
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kPowerUnavailable}).ok());
  EXPECT_EQ(core.power(PowerKind::kInstant).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(core.counter_millijoules().ok());
}

TEST(FaultTest, AnOutOfBandCapBindsAtOnce) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  core.AdvanceTo(10s);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 150_W}).ok());
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
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kClockReset, .at = 5s}).ok());
  core.AdvanceTo(4.9s);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 600_MHz);
  core.AdvanceTo(5s);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 1410_MHz);
}

TEST(FaultTest, HitsTheStatedShareOfCallsTheSameWayForASeed) {
  const auto pattern = [](std::uint64_t seed) {
    GpuCore core(Model("A100"), seed, 0);
    EXPECT_TRUE(core.InjectFault({.kind = FaultKind::kLost, .probability = 0.3}).ok());
    std::string hits;
    for (int i = 0; i < 5000; ++i) hits += core.DrawFault(FaultKind::kLost) ? 'x' : '.';
    return hits;
  };
  const std::string hits = pattern(1);
  EXPECT_NEAR(static_cast<double>(std::count(hits.begin(), hits.end(), 'x')) / 5000.0, 0.3, 0.03);
  EXPECT_EQ(hits, pattern(1));
  EXPECT_NE(hits, pattern(2));
}

}  // namespace gpu_core_fault_test
}  // namespace zeus::sim
