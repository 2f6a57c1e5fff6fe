// A simulated GPU that runs workloads of the catalogue.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/power_history.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_workload_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

using testing::Draw;
using testing::Model;
using testing::Settle;
using testing::Train;

// Every model, workload and recorded batch size, at the lowest, a middle and the highest limit.
TEST(GpuCoreWorkloadTest, AWarmGpuDoesWhatTheCatalogueSays) {
  for (const GpuModel& model : GpuModels()) {
    const PowerRange& range = model.limit_range;
    for (const Workload& workload : Workloads()) {
      for (const unsigned batch_size : workload.batch_sizes) {
        for (const Watts limit : {range.min, (range.min + range.max) / 2.0, range.max}) {
          const auto done = testing::RunWarm(model, workload, batch_size, limit);
          const auto said = Predict(model, workload, batch_size,
                                    {.power_limit = limit, .clock_cap = std::nullopt});
          ASSERT_TRUE(done.ok() && said.ok());
          EXPECT_NEAR(done.value().time_per_epoch / said.value().time_per_epoch, 1.0, 1e-6)
              << model.id << ' ' << workload.name << ' ' << batch_size << ' ' << limit.value();
          EXPECT_NEAR(done.value().average_power / said.value().average_power, 1.0, 1e-3)
              << model.id << ' ' << workload.name << ' ' << batch_size << ' ' << limit.value();
        }
      }
    }
  }
}

TEST(GpuCoreWorkloadTest, StepsAreCountedThroughChangesOfKnobsAndSharing) {
  GpuCore core(Model("V100"), 1, 0);
  const std::uint32_t id = core.AttachLoad(Train("resnet50", 256)).value();
  EXPECT_EQ(core.StepsDone(id).value(), 0.0);
  double expected = 0.0;
  const auto run = [&](Seconds time) {
    expected += time / core.StepTime(id).value();
    core.AdvanceTo(core.now() + time);
    EXPECT_NEAR(core.StepsDone(id).value(), expected, 1e-6);
  };
  run(60s);
  const std::uint32_t other = core.AttachLoad(Train("resnet50", 128)).value();
  EXPECT_EQ(core.StepsDone(other).value(), 0.0);
  run(60s);
  core.DetachLoad(other);
  core.SetKnobLatency(0s);
  ASSERT_TRUE(core.SetPowerLimit(100_W).ok());
  core.AdvanceTo(core.now());  // The limit arrives.
  run(60s);
  EXPECT_EQ(core.StepsDone(other).error().code, ErrorCode::kNotFound);
}

TEST(GpuCoreWorkloadTest, TheLevelsOfAStepStayInsideTheLimit) {
  GpuCore core(Model("V100"), 1, 0);
  const auto id = core.AttachLoad(Train("deepspeech2", 2));
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(core.SetPowerLimit(150_W).ok());
  Settle(core);
  const Seconds step = core.StepTime(id.value()).value();
  Watts lowest = 1000_W;
  Watts highest = 0_W;
  for (int i = 0; i < 200; ++i) {
    core.AdvanceTo(core.now() + step / 100.0);
    lowest = std::min(lowest, core.exact_power());
    highest = std::max(highest, core.exact_power());
  }
  EXPECT_LE(highest, 150_W + Watts(1e-6));
  EXPECT_LT(lowest, highest - 10_W);
  EXPECT_GE(lowest, core.model().idle_power - Watts(1e-6));
}

TEST(GpuCoreWorkloadTest, AWorkloadMayExceedALowLimitAsRecordedButNotACapFromOutside) {
  GpuCore core(Model("A40"), 1, 0);
  ASSERT_TRUE(core.AttachLoad(Train("resnet50", 256)).ok());
  ASSERT_TRUE(core.SetPowerLimit(100_W).ok());
  Settle(core);
  EXPECT_NEAR(core.exact_power().value(), 120.0, 2.0);
  ASSERT_TRUE(core.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 80_W}).ok());
  EXPECT_EQ(core.exact_power(), 80_W);
}

TEST(GpuCoreWorkloadTest, WorkloadsThatShareTakeTurns) {
  GpuCore core(Model("V100"), 1, 0);
  const auto first = core.AttachLoad(Train("resnet50", 256));
  ASSERT_TRUE(first.ok());
  const Seconds alone = core.StepTime(first.value()).value();
  const auto second = core.AttachLoad(Train("resnet50", 128));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(core.StepTime(first.value()).value(), alone * 2.0);
  core.DetachLoad(second.value());
  EXPECT_EQ(core.StepTime(first.value()).value(), alone);
  EXPECT_EQ(core.StepTime(second.value()).error().code, ErrorCode::kNotFound);
}

TEST(GpuCoreWorkloadTest, APlainLoadHasNoSteps) {
  GpuCore core(Model("V100"), 1, 0);
  const auto id = core.AttachLoad(Draw(100_W));
  EXPECT_EQ(core.StepTime(id.value()).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(core.StepsDone(id.value()).error().code, ErrorCode::kNotSupported);
}

TEST(GpuCoreWorkloadTest, AChangeOfKnobsDoesNotStartAStepAgain) {
  // With a limit set again and again in mid-step, a gap must still come.
  GpuCore core(Model("V100"), 1, 0);
  const auto id = core.AttachLoad(Train("deepspeech2", 2));
  ASSERT_TRUE(id.ok());
  Settle(core);
  const Seconds step = core.StepTime(id.value()).value();
  const auto utilization = core.utilization().compute;
  ASSERT_LT(utilization, 0.7);
  core.SetKnobLatency(step * 0.1);
  int in_gap = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(core.SetPowerLimit(250_W).ok());
    core.AdvanceTo(core.now() + step * 0.05);
    in_gap += core.exact_power() < core.power_limit().requested * 0.5 ? 1 : 0;
  }
  EXPECT_NEAR(in_gap / 1000.0, 1.0 - utilization, 0.1);
}

TEST(GpuCoreWorkloadTest, MemoryGrowsWithTheBatchSize) {
  GpuCore core(Model("V100"), 1, 0);
  const std::uint64_t idle = core.memory().used_bytes;
  ASSERT_TRUE(core.AttachLoad(Train("resnet50", 64)).ok());
  const std::uint64_t small = core.memory().used_bytes;
  GpuCore other(Model("V100"), 1, 0);
  ASSERT_TRUE(other.AttachLoad(Train("resnet50", 256)).ok());
  EXPECT_GT(small, idle);
  EXPECT_GT(other.memory().used_bytes, small);
  EXPECT_LE(other.memory().used_bytes, other.memory().total_bytes);
}

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

}  // namespace gpu_core_workload_test
}  // namespace zeus::sim
