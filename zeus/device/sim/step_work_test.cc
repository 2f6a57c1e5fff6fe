#include "zeus/device/sim/step_work.h"

#include <gtest/gtest.h>

#include <limits>

#include "zeus/base/clock.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::sim {
namespace step_work_test {

using namespace zeus::literals;

const GpuModel& V100() { return *FindGpuModel("V100").value(); }

// A tenth of a second of arithmetic, or of memory, on a V100.
constexpr StepWork kArithmetic{.operations = 5.6e12, .bytes = 0};
constexpr StepWork kMemory{.operations = 0, .bytes = 72e9};
constexpr StepWork kBoth{.operations = 5.6e12, .bytes = 72e9};

OperatingPoint At(const StepWork& work, Watts limit, std::optional<Hertz> cap = std::nullopt) {
  return PredictStep(V100(), work, {.power_limit = limit, .clock_cap = cap}).value();
}

LoadSpec Steps(const StepWork& work) {
  LoadSpec load;
  load.work = work;
  return load;
}

TEST(StepWorkTest, ArithmeticAndMemoryTakeHalfAndFourFifthsOfTheirPeaks) {
  EXPECT_NEAR(At(kArithmetic, 250_W).time_per_epoch.count(), 0.1, 1e-12);
  EXPECT_NEAR(At(kMemory, 250_W).time_per_epoch.count(), 0.1, 1e-12);
  EXPECT_NEAR(At(kBoth, 250_W).time_per_epoch.count(), 0.2, 1e-12);
}

TEST(StepWorkTest, ArithmeticDrawsTheHighestLimitAndMemoryLess) {
  EXPECT_NEAR(At(kArithmetic, 250_W).average_power.value(), 250, 1e-9);
  EXPECT_NEAR(At(kMemory, 250_W).average_power.value(), 25 + 0.6 * 225, 1e-9);
  EXPECT_NEAR(At(kBoth, 250_W).average_power.value(), 25 + 0.8 * 225, 1e-9);
}

TEST(StepWorkTest, ALowerClockStretchesArithmeticOnly) {
  EXPECT_NEAR(At(kArithmetic, 250_W, 690_MHz).time_per_epoch.count(), 0.2, 1e-12);
  EXPECT_NEAR(At(kBoth, 250_W, 690_MHz).time_per_epoch.count(), 0.3, 1e-12);
  EXPECT_NEAR(At(kMemory, 250_W, 690_MHz).time_per_epoch.count(), 0.1, 1e-12);
}

TEST(StepWorkTest, ALowerLimitIsKeptAndNeverMakesAStepShorter) {
  for (const GpuModel& model : GpuModels()) {
    Seconds before{0};
    for (Watts limit = model.limit_range.max; limit >= model.limit_range.min; limit -= 5_W) {
      const OperatingPoint point = PredictStep(model, kBoth, {limit, std::nullopt}).value();
      EXPECT_LE(point.average_power.value(), limit.value() + 1e-9) << model.id;
      EXPECT_GE(point.time_per_epoch, before) << model.id << " at " << limit.value() << " W";
      before = point.time_per_epoch;
    }
  }
}

TEST(StepWorkTest, MeaninglessWorkAndKnobsAreRefused) {
  const KnobSettings knobs{.power_limit = 250_W, .clock_cap = std::nullopt};
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const StepWork& work : {StepWork{0, 0}, StepWork{-1, 5}, StepWork{kNan, 1}}) {
    const auto point = PredictStep(V100(), work, knobs);
    ASSERT_FALSE(point.ok());
    EXPECT_EQ(point.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(PredictStep(V100(), kBoth, {99_W, std::nullopt}).ok());
  EXPECT_FALSE(PredictStep(V100(), kBoth, {250_W, 100_MHz}).ok());
}

TEST(StepWorkTest, AGpuThatRunsStepsIsSlowedDownByItsPowerLimit) {
  VirtualClock clock;
  SimulatedGpu gpu(clock, V100());
  const std::uint32_t load = gpu.AttachLoad(Steps(kArithmetic)).value();
  clock.Advance(Seconds(10));
  EXPECT_NEAR(gpu.StepsDone(load).value(), 100, 1e-6);

  ASSERT_TRUE(gpu.SetPowerLimitWithoutJournal(125_W).ok());
  clock.Advance(Seconds(1));
  const double before = gpu.StepsDone(load).value();
  clock.Advance(Seconds(10));
  const double expected = 10 / At(kArithmetic, 125_W).time_per_epoch.count();
  EXPECT_NEAR(gpu.StepsDone(load).value() - before, expected, 1e-6);
  EXPECT_LT(expected, 80);
  EXPECT_LE(gpu.ExactPower().value(), 125 + 1e-9);
}

TEST(StepWorkTest, ALoadIsOneThingOnly) {
  VirtualClock clock;
  SimulatedGpu gpu(clock, V100());
  LoadSpec two_things = Steps(kBoth);
  two_things.demand = 200_W;
  EXPECT_FALSE(gpu.AttachLoad(two_things).ok());
  EXPECT_FALSE(gpu.AttachLoad(Steps({.operations = 0, .bytes = 0})).ok());
}

}  // namespace step_work_test
}  // namespace zeus::sim
