#include "zeus/device/sim/gpu_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

using testing::Draw;
using testing::Model;
using testing::Settle;
using testing::Train;

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

TEST(GpuCoreTest, AnApplicationsClockBoundsTheClockOnEveryPart) {
  GpuCore core(Model("P100"), 1, 0);  // It cannot lock its clock.
  ASSERT_TRUE(core.AttachLoad(Draw(200_W)).ok());
  const Hertz clock = core.supported_clocks(ClockDomain::kGraphics)[10];
  ASSERT_TRUE(core.SetApplicationsClock(clock).ok());
  Settle(core);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), clock);
  EXPECT_EQ(core.SetApplicationsClock(clock + 1_MHz).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(core.ResetApplicationsClock().ok());
  Settle(core);
  EXPECT_EQ(core.clock(ClockDomain::kGraphics), core.model().graphics_clock.max);
}

TEST(GpuCoreTest, TheTimeBelowTheHighestClockIsCountedByItsReason) {
  GpuCore core(Model("A100"), 1, 0);
  const auto load = core.AttachLoad(Draw(350_W));
  core.AdvanceTo(10s);
  EXPECT_EQ(core.slow_time().power, 0s);

  core.SetKnobLatency(0s);
  ASSERT_TRUE(core.SetPowerLimit(200_W).ok());
  core.AdvanceTo(14s);
  EXPECT_NEAR(core.slow_time().power.count(), 4.0, 1e-9);
  ASSERT_TRUE(core.SetPowerLimit(400_W).ok());
  ASSERT_TRUE(core.LockClock(ClockDomain::kGraphics, {.min = 705_MHz, .max = 705_MHz}).ok());
  core.AdvanceTo(20s);
  EXPECT_NEAR(core.slow_time().power.count(), 4.0, 1e-9);
  EXPECT_NEAR(core.slow_time().lock.count(), 6.0, 1e-9);

  // A GPU without work is not held down by anything.
  core.DetachLoad(load.value());
  core.AdvanceTo(30s);
  EXPECT_NEAR(core.slow_time().lock.count(), 6.0, 1e-9);
  EXPECT_EQ(core.slow_time().thermal, 0s);
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

// The energy of a simulated GPU is the integral of its power, whatever happens to it and however
// time moves. The integral here is numerical and knows nothing of how the core computes it.

// Advances the core to `end`, up to which its power must be smooth, and adds the integral
// of that power by two-point Gauss-Legendre quadrature. long double keeps the sum's own rounding
// out.
void Integrate(GpuCore& core, Seconds end, long double& integral) {
  static const double kNode = 0.5 / std::sqrt(3.0);
  const Seconds start = core.now();
  const Seconds duration = end - start;
  for (const double node : {0.5 - kNode, 0.5 + kNode}) {
    core.AdvanceTo(start + duration * node);
    integral += static_cast<long double>(core.exact_power().value()) / 2 *
                static_cast<long double>(duration.count());
  }
  core.AdvanceTo(end);
}

TEST(ExactnessTest, AWeekWithAMillionLoadChangesIsTheIntegralOfItsPower) {
  const Seconds week = 24h * 7;
  constexpr int kChanges = 1'000'000;
  GpuCore core(Model("A100"), 1, 0);
  Random random(2);
  // Ends at an update of the counter, so that the counter covers exactly the integral.
  const Seconds end =
      LastUpdate(week, *core.model().sensors.counter_update, core.board_sensors().counter_phase);
  long double integral = 0;
  std::uint32_t load = 0;
  for (int i = 1; i <= kChanges; ++i) {
    core.DetachLoad(load);
    load = core.AttachLoad(Draw(Watts(random.Uniform(0.0, 500.0)))).value();
    const double jitter = i < kChanges ? random.Uniform(-0.4, 0.4) : 0.0;
    Integrate(core, end * ((i + jitter) / kChanges), integral);
  }
  EXPECT_EQ(core.now(), end);
  const auto expected = static_cast<double>(integral);
  EXPECT_NEAR(core.exact_energy().value() / expected, 1.0, 1e-12);

  const BoardSensors& board = core.board_sensors();
  const double counted = static_cast<double>(core.counter_millijoules().value()) / 1e3;
  const double reported = board.gain * expected + board.offset.value() * end.count();
  EXPECT_NEAR(counted / reported, 1.0, 1e-11);
}

TEST(ExactnessTest, TheStepsOfAWorkloadAddUp) {
  GpuCore core(Model("V100"), 1, 0);
  const auto id = core.AttachLoad(Train("deepspeech2", 2));
  ASSERT_TRUE(id.ok());
  const Seconds step = core.StepTime(id.value()).value();
  const double duty = core.utilization().compute;
  long double integral = 0;
  for (int i = 0; i < 20000; ++i) {
    Integrate(core, step * (i + duty), integral);
    Integrate(core, step * (i + 1.0), integral);
  }
  EXPECT_NEAR(core.exact_energy().value() / static_cast<double>(integral), 1.0, 1e-10);
}

// One random thing that can happen to a GPU.
void Happen(GpuCore& core, Random& random) {
  const GpuModel& model = core.model();
  switch (random.Below(7)) {
    case 0:
      (void)core.AttachLoad(
          testing::DrawFor(Seconds(random.Uniform(0.01, 90.0)), Watts(random.Uniform(0.0, 500.0))));
      break;
    case 1:
      (void)core.AttachLoad(Train("resnet50", 256));
      break;
    case 2:
      core.DetachLoad(static_cast<std::uint32_t>(random.Below(50)));
      break;
    case 3:
      (void)core.SetPowerLimit(
          Watts(random.Uniform(model.limit_range.min.value(), model.limit_range.max.value())));
      break;
    case 4:
      (void)core.LockClock(ClockDomain::kGraphics, {.min = 0_MHz, .max = 900_MHz});
      break;
    case 5:
      (void)core.ResetClock(ClockDomain::kGraphics);
      break;
    default:
      core.SetAmbient(Celsius(random.Uniform(15.0, 70.0)));
  }
}

TEST(ExactnessTest, ManySmallStepsAreOneBigStep) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    GpuCore leaping(Model("A100"), seed, 0);
    GpuCore stepping = leaping;
    for (int i = 0; i < 100; ++i) {
      Random twin = random;
      Happen(leaping, random);
      Happen(stepping, twin);
      const Seconds until = leaping.now() + Seconds(random.Uniform(0.0, 40.0));
      leaping.AdvanceTo(until);
      while (stepping.now() < until)
        stepping.AdvanceTo(std::min(until, stepping.now() + Seconds(random.Uniform(0.0, 0.7))));
      ASSERT_EQ(leaping.exact_energy(), stepping.exact_energy());
      ASSERT_EQ(leaping.exact_power(), stepping.exact_power());
      ASSERT_EQ(leaping.temperature(), stepping.temperature());
      ASSERT_EQ(leaping.counter_millijoules().value(), stepping.counter_millijoules().value());
      ASSERT_EQ(leaping.power(PowerKind::kInstant).value(),
                stepping.power(PowerKind::kInstant).value());
    }
  }
}

// A simulated GPU with work that ends, and with processes that wait for each other.

// Nine tenths of a second of arithmetic and a tenth of memory traffic on an A100 at full clock.
constexpr StepWork kWork{.operations = 0.9 * 156e12, .bytes = 0.1 * 1244e9};

LoadSpec Computation(double steps = 1) {
  LoadSpec spec;
  spec.work = kWork;
  spec.steps = steps;
  return spec;
}

LoadSpec Waiting(Watts demand) {
  LoadSpec spec;
  spec.demand = demand;
  spec.waits = true;
  return spec;
}

class GpuCoreWorkTest : public ::testing::Test {
 protected:
  GpuCoreWorkTest() { core.SetKnobLatency(0s); }

  void Lock(Hertz clock) {
    ASSERT_TRUE(core.LockClock(ClockDomain::kGraphics, {.min = clock, .max = clock}).ok());
    core.AdvanceTo(core.now());
  }

  GpuCore core{Model("A100"), 1, 0};
};

TEST_F(GpuCoreWorkTest, AComputationEndsByItselfWhenItIsDone) {
  const std::uint32_t id = core.AttachLoad(Computation()).value();
  EXPECT_NEAR(core.PredictEnd(id).value().count(), 1.0, 1e-9);
  core.AdvanceTo(999ms);
  EXPECT_TRUE(core.PredictEnd(id).ok());
  core.AdvanceTo(10s);
  EXPECT_EQ(core.PredictEnd(id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(core.exact_power() < 51_W, true);
}

TEST_F(GpuCoreWorkTest, OnlyTheArithmeticTakesLongerAtALowerClock) {
  Lock(705_MHz);  // Half of the highest.
  const std::uint32_t id = core.AttachLoad(Computation()).value();
  EXPECT_NEAR(core.PredictEnd(id).value().count(), 0.1 + 2 * 0.9, 1e-9);
}

TEST_F(GpuCoreWorkTest, AClockThatChangesMeanwhileMovesTheEnd) {
  const std::uint32_t id = core.AttachLoad(Computation()).value();
  core.AdvanceTo(250ms);
  Lock(705_MHz);
  // Three quarters of the work are left, at 1.9 s for all of it.
  EXPECT_NEAR(core.PredictEnd(id).value().count(), 0.25 + 0.75 * 1.9, 1e-9);
  core.AdvanceTo(1s);
  Lock(1410_MHz);
  EXPECT_NEAR(core.PredictEnd(id).value().count(), 1 + (0.75 - 0.75 / 1.9), 1e-9);
}

TEST_F(GpuCoreWorkTest, TheEnergyOfAComputationIsItsPowerTimesItsTime) {
  core.AttachLoad(Computation(100)).value();
  core.AdvanceTo(100s - 1ms);
  const auto point = PredictStep(Model("A100"), kWork, {.power_limit = 400_W, .clock_cap = {}});
  EXPECT_NEAR(core.exact_energy() / (point.value().average_power * core.now()), 1.0, 0.01);
}

TEST_F(GpuCoreWorkTest, AProcessThatWaitsDrawsOnlyWhileNothingElseRuns) {
  ASSERT_TRUE(core.AttachLoad(Waiting(85_W)).ok());
  core.AdvanceTo(10min);
  EXPECT_NEAR(core.exact_power().value(), 85, 0.1);

  GpuCore alone(Model("A100"), 1, 0);
  alone.AdvanceTo(10min);
  ASSERT_TRUE(alone.AttachLoad(Computation(3600)).ok());
  ASSERT_TRUE(core.AttachLoad(Computation(3600)).ok());
  core.AdvanceTo(20min);
  alone.AdvanceTo(20min);
  EXPECT_NEAR(core.exact_power() / alone.exact_power(), 1, 1e-6);

  core.AdvanceTo(3h);
  EXPECT_NEAR(core.exact_power().value(), 85, 0.1);
}

TEST_F(GpuCoreWorkTest, WaitingTakesLessAtALowerClock) {
  ASSERT_TRUE(core.AttachLoad(Waiting(85_W)).ok());
  Lock(705_MHz);
  core.AdvanceTo(10min);
  const double share = PowerShareAt(Model("A100"), 705_MHz);
  EXPECT_NEAR(core.exact_power().value(), 50 + 35 * share, 0.1);
}

TEST_F(GpuCoreWorkTest, WorkWithoutAnEndOrAMeaningIsRefused) {
  EXPECT_EQ(core.AttachLoad(Computation(0)).error().code, ErrorCode::kInvalidArgument);
  LoadSpec draw = testing::Draw(100_W);
  draw.steps = 3;
  EXPECT_EQ(core.AttachLoad(draw).error().code, ErrorCode::kInvalidArgument);
  LoadSpec waits_for_nothing = Computation();
  waits_for_nothing.waits = true;
  EXPECT_EQ(core.AttachLoad(waits_for_nothing).error().code, ErrorCode::kInvalidArgument);
}

// Loads of processes that die or are slow.

LoadSpec LoadOfProcess(int pid) {
  LoadSpec spec = Draw(200_W);
  spec.pid = pid;
  return spec;
}

TEST(GpuCoreProcessTest, ALoadEndsOneTimeoutAfterItsLastHeartbeat) {
  GpuCore core(Model("V100"), 1, 0);
  const LoadSpec spec = LoadOfProcess(42);
  const auto id = core.AttachLoad(spec);
  ASSERT_TRUE(id.ok());
  core.AdvanceTo(2s);
  EXPECT_EQ(core.Heartbeat(id.value(), spec).value(), id.value());
  core.AdvanceTo(4.9s);
  EXPECT_EQ(core.processes().size(), 1U);
  core.AdvanceTo(5s);
  EXPECT_TRUE(core.processes().empty());
}

TEST(GpuCoreProcessTest, EveryCopyLetsALoadEndAtTheSameTime) {
  GpuCore often(Model("V100"), 1, 0);
  ASSERT_TRUE(often.AttachLoad(LoadOfProcess(42)).ok());
  GpuCore seldom = often;
  std::uint64_t counter = 0;
  for (Seconds time(0); time <= Seconds(10); time += 10ms) {
    often.AdvanceTo(time);
    ASSERT_GE(often.counter_millijoules().value(), counter);
    counter = often.counter_millijoules().value();
  }
  often.AdvanceTo(20s);
  seldom.AdvanceTo(20s);
  EXPECT_EQ(often.exact_energy(), seldom.exact_energy());
  EXPECT_EQ(often.counter_millijoules().value(), seldom.counter_millijoules().value());
}

TEST(GpuCoreProcessTest, ALateHeartbeatAttachesTheLoadAgainFromNowOn) {
  GpuCore core(Model("V100"), 1, 0);
  const LoadSpec spec = LoadOfProcess(42);
  const auto id = core.AttachLoad(spec);
  ASSERT_TRUE(id.ok());
  core.AdvanceTo(60s);
  const Joules drawn = core.exact_energy();
  const auto again = core.Heartbeat(id.value(), spec);
  ASSERT_TRUE(again.ok());
  EXPECT_NE(again.value(), id.value());
  EXPECT_EQ(core.exact_energy(), drawn);
  EXPECT_GT(core.exact_power(), 190_W);
  core.AdvanceTo(63s);
  EXPECT_TRUE(core.processes().empty());
}

TEST(GpuCoreProcessTest, ALoadWithoutAProcessNeedsNoHeartbeat) {
  GpuCore core(Model("V100"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(LoadOfProcess(0)).ok());
  core.AdvanceTo(1h);
  EXPECT_GT(core.exact_power(), 190_W);
}

TEST(GpuCoreProcessTest, AHeartbeatDoesNotOutlastTheDuration) {
  GpuCore core(Model("V100"), 1, 0);
  LoadSpec spec = LoadOfProcess(42);
  spec.duration = 4s;
  const auto id = core.AttachLoad(spec);
  ASSERT_TRUE(id.ok());
  core.AdvanceTo(2s);
  ASSERT_TRUE(core.Heartbeat(id.value(), spec).ok());
  core.AdvanceTo(4s);
  EXPECT_TRUE(core.processes().empty());
}

}  // namespace gpu_core_test
}  // namespace zeus::sim
