#include "zeus/device/sim/gpu_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

using testing::Draw;
using testing::Model;
using testing::Train;

// Long enough for latencies and temperatures to settle.
void Settle(GpuCore& core) { core.AdvanceTo(core.now() + 10min); }

TEST(GpuCoreTest, AnIdleGpuDrawsItsIdlePower) {
  for (const GpuModel& model : GpuModels()) {
    GpuCore core(model, 1, 0);
    core.AdvanceTo(1h);
    EXPECT_NEAR(core.exact_energy() / (model.idle_power * 1h), 1.0, 1e-12) << model.id;
    EXPECT_TRUE(core.throttle().idle);
    EXPECT_EQ(core.clock(ClockDomain::kGraphics), core.supported_clocks(ClockDomain::kGraphics)[0]);
  }
}

TEST(GpuCoreTest, ALoadDrawsItsDemandOnceWarm) {
  GpuCore core(Model("V100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(220_W)).ok());
  EXPECT_LT(core.exact_power(), 220_W);  // A cold board leaks less.
  EXPECT_GT(core.exact_power(), 214_W);
  Settle(core);
  EXPECT_NEAR(core.exact_power().value(), 220.0, 1e-3);
  EXPECT_EQ(core.utilization().compute, 1.0);
}

TEST(GpuCoreTest, ALoadBelowIdleDrawsIdlePower) {
  GpuCore core(Model("V100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(5_W)).ok());
  Settle(core);
  EXPECT_NEAR(core.exact_power() / core.model().idle_power, 1.0, 1e-6);
}

TEST(GpuCoreTest, ALimitCapsPowerAndLowersTheClock) {
  GpuCore core(Model("V100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(240_W)).ok());
  ASSERT_TRUE(core.SetPowerLimit(150_W).ok());
  Settle(core);
  EXPECT_EQ(core.exact_power(), 150_W);
  EXPECT_TRUE(core.throttle().power_cap);

  // The highest supported clock whose power fits.
  const Hertz clock = core.clock(ClockDomain::kGraphics);
  const GpuModel& model = core.model();
  const Watts idle = model.idle_power;
  const auto power_at = [&](Hertz f) { return idle + (240_W - idle) * PowerShareAt(model, f); };
  EXPECT_LE(power_at(clock), 150_W);
  EXPECT_GT(power_at(clock + model.graphics_clock_step), 150_W);
}

TEST(GpuCoreTest, NoLimitIsExceededWhileTheBoardIsStillHotFromBefore) {
  GpuCore core(Model("A100"), 1, 0);
  const auto id = core.AttachLoad(Draw(400_W));
  ASSERT_TRUE(id.ok());
  Settle(core);
  core.DetachLoad(id.value());
  ASSERT_TRUE(core.SetPowerLimit(100_W).ok());
  core.AdvanceTo(core.now() + 100ms);
  ASSERT_TRUE(core.AttachLoad(Draw(100_W)).ok());
  EXPECT_LE(core.exact_power(), 100_W);
}

TEST(GpuCoreTest, ALimitTakesEffectAfterItsLatencyButShowsAtOnce) {
  GpuCore core(Model("A100"), 7, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  Settle(core);
  const Seconds asked = core.now();
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  EXPECT_EQ(core.power_limit().requested, 200_W);
  EXPECT_EQ(core.power_limit().enforced, 200_W);
  core.AdvanceTo(asked + 9.9ms);
  EXPECT_GT(core.exact_power(), 390_W);
  core.AdvanceTo(asked + 30.1ms);
  EXPECT_EQ(core.exact_power(), 200_W);
}

TEST(GpuCoreTest, ChangesOnTheirWayArriveInOrder) {
  GpuCore core(Model("A100"), 7, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(core.SetPowerLimit(Watts(100.0 + 10.0 * i)).ok());
  Settle(core);
  EXPECT_EQ(core.exact_power(), 290_W);
}

TEST(GpuCoreTest, TheLatencyCanBeChanged) {
  GpuCore core(Model("A100"), 7, 0);
  core.SetKnobLatency(2s);
  ASSERT_TRUE(core.AttachLoad(Draw(400_W)).ok());
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  core.AdvanceTo(900ms);
  EXPECT_GT(core.exact_power(), 200_W);
  core.AdvanceTo(3100ms);
  EXPECT_EQ(core.exact_power(), 200_W);
}

TEST(GpuCoreTest, RefusesLimitsAndClocksThatItDoesNotHave) {
  GpuCore core(Model("V100"), 1, 0);
  EXPECT_EQ(core.SetPowerLimit(99_W).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(core.SetPowerLimit(251_W).error().code, ErrorCode::kInvalidArgument);
  const ClockRange between{.min = Hertz(1381e6), .max = Hertz(1394e6)};
  EXPECT_EQ(core.LockClock(ClockDomain::kGraphics, between).error().code,
            ErrorCode::kInvalidArgument);
}

TEST(GpuCoreTest, LocksOnlyTheClocksThatThePartLetsAnybodyLock) {
  const auto locks = [](const char* id, ClockDomain domain) {
    GpuCore core(Model(id), 1, 0);
    const Hertz highest = core.supported_clocks(domain).back();
    const Status locked = core.LockClock(domain, {.min = highest, .max = highest});
    EXPECT_EQ(core.ResetClock(domain).ok(), locked.ok());
    if (!locked.ok()) {
      EXPECT_EQ(locked.error().code, ErrorCode::kNotSupported);
    }
    return locked.ok();
  };
  EXPECT_FALSE(locks("P100", ClockDomain::kGraphics));
  for (const char* id : {"V100", "RTX6000", "A40", "A100", "H100", "L40S"})
    EXPECT_TRUE(locks(id, ClockDomain::kGraphics)) << id;
  for (const char* id : {"P100", "V100", "RTX6000"})
    EXPECT_FALSE(locks(id, ClockDomain::kMemory)) << id;
  for (const char* id : {"A40", "A100", "H100", "L40S"})
    EXPECT_TRUE(locks(id, ClockDomain::kMemory)) << id;
}

TEST(GpuCoreTest, ALockedClockLowersPowerByTheLawOfVoltageAndFrequency) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(350_W)).ok());
  ASSERT_TRUE(core.LockClock(ClockDomain::kGraphics, {.min = 705_MHz, .max = 705_MHz}).ok());
  Settle(core);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 705_MHz);
  const double voltage = 0.65 + 0.35 * 0.5;
  const double expected = 50.0 + 300.0 * (0.25 + 0.75 * 0.5 * voltage * voltage);
  EXPECT_NEAR(core.exact_power().value(), expected, 1e-6);
  EXPECT_TRUE(core.throttle().locked_clock);
  EXPECT_FALSE(core.throttle().power_cap);

  ASSERT_TRUE(core.ResetClock(ClockDomain::kGraphics).ok());
  Settle(core);
  EXPECT_NEAR(core.exact_power().value(), 350.0, 1e-3);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), 1410_MHz);
}

TEST(GpuCoreTest, LoadsThatShareAddUpToTheLimit) {
  GpuCore core(Model("A100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Draw(150_W)).ok());
  ASSERT_TRUE(core.AttachLoad(Draw(200_W)).ok());
  Settle(core);
  EXPECT_NEAR(core.exact_power().value(), 50.0 + 100.0 + 150.0, 1e-3);
  ASSERT_TRUE(core.AttachLoad(Draw(250_W)).ok());
  Settle(core);
  EXPECT_EQ(core.exact_power(), 400_W);
}

TEST(GpuCoreTest, ALoadEndsAfterItsDuration) {
  GpuCore core(Model("A100"), 1, 0);
  LoadSpec spec = testing::DrawFor(10s, 300_W);
  spec.pid = 42;
  spec.heartbeat_timeout = 1h;
  ASSERT_TRUE(core.AttachLoad(spec).ok());
  core.AdvanceTo(9.99s);
  EXPECT_GT(core.exact_power(), 290_W);
  EXPECT_EQ(core.processes(), std::vector<int>{42});
  core.AdvanceTo(10s);
  EXPECT_LT(core.exact_power(), 55_W);
  EXPECT_TRUE(core.processes().empty());
}

TEST(GpuCoreTest, TakesEightLoadsAndRefusesTheNinth) {
  GpuCore core(Model("A100"), 1, 0);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(core.AttachLoad(Draw(60_W)).ok());
  EXPECT_EQ(core.AttachLoad(Draw(60_W)).error().code, ErrorCode::kUnavailable);
}

TEST(GpuCoreTest, RefusesLoadsThatMeanNothing) {
  GpuCore core(Model("A100"), 1, 0);
  EXPECT_EQ(core.AttachLoad({}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(core.AttachLoad(Draw(Watts(-1))).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(core.AttachLoad(Draw(Watts(std::nan("")))).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(core.AttachLoad(Train("resnet50", 0)).error().code, ErrorCode::kInvalidArgument);
  LoadSpec both = Train("resnet50", 256);
  both.demand = 100_W;
  EXPECT_EQ(core.AttachLoad(both).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(core.AttachLoad(testing::DrawFor(0s, 100_W)).error().code, ErrorCode::kInvalidArgument);
}

TEST(GpuCoreTest, TemperatureRisesTowardsAmbientPlusResistanceTimesPower) {
  GpuCore core(Model("V100"), 1, 0);
  EXPECT_NEAR(core.temperature().value(), 27.0 + 0.17 * core.model().idle_power.value(), 1e-9);
  ASSERT_TRUE(core.AttachLoad(Draw(240_W)).ok());
  core.AdvanceTo(30s);
  EXPECT_GT(core.temperature(), 50_degC);
  EXPECT_LT(core.temperature(), 60_degC);
  Settle(core);
  EXPECT_NEAR(core.temperature().value(), 27.0 + 0.17 * 240.0, 1e-3);
}

TEST(GpuCoreTest, NoModelThrottlesAtItsDefaultLimit) {
  for (const GpuModel& model : GpuModels()) {
    GpuCore core(model, 1, 0);
    ASSERT_TRUE(core.AttachLoad(Draw(model.default_limit * 2.0)).ok());
    Settle(core);
    EXPECT_FALSE(core.throttle().thermal) << model.id;
    EXPECT_GT(core.temperature(), 60_degC) << model.id;
  }
}

TEST(GpuCoreTest, AHotGpuSlowsDownUntilItIsCoolAgain) {
  GpuCore core(Model("V100"), 1, 0);
  core.SetAmbient(55_degC);
  const auto id = core.AttachLoad(Draw(250_W));
  ASSERT_TRUE(id.ok());
  Celsius hottest = 0_degC;
  bool slowed = false;
  bool released = false;
  for (int i = 0; i < 6000; ++i) {
    core.AdvanceTo(core.now() + 100ms);
    hottest = std::max(hottest, core.temperature());
    if (core.throttle().thermal) {
      slowed = true;
      EXPECT_LE(core.clock(ClockDomain::kGraphics), 690_MHz);
      EXPECT_GE(core.temperature(), 84_degC - Celsius(1e-9));
    } else {
      released = released || slowed;
    }
  }
  EXPECT_TRUE(slowed);
  EXPECT_TRUE(released);
  EXPECT_NEAR(hottest.value(), 87.0, 0.5);

  core.DetachLoad(id.value());
  Settle(core);
  EXPECT_FALSE(core.throttle().thermal);
}

TEST(GpuCoreTest, NeverGoesBackInTime) {
  GpuCore core(Model("V100"), 1, 0);
  core.AdvanceTo(10s);
  core.AdvanceTo(5s);
  EXPECT_EQ(core.now(), Seconds(10));
}

TEST(GpuCoreTest, IdentityFollowsFromSeedAndIndex) {
  const GpuModel& model = Model("A100");
  EXPECT_EQ(GpuCore(model, 1, 0).uuid(), GpuCore(model, 1, 0).uuid());
  EXPECT_NE(GpuCore(model, 1, 0).uuid(), GpuCore(model, 1, 1).uuid());
  EXPECT_NE(GpuCore(model, 1, 0).uuid(), GpuCore(model, 2, 0).uuid());
  EXPECT_NE(GpuCore(model, 1, 0).pci_address(), GpuCore(model, 1, 1).pci_address());
  EXPECT_EQ(GpuCore(model, 1, 0).uuid().size(), 40U);
}

}  // namespace gpu_core_test
}  // namespace zeus::sim
