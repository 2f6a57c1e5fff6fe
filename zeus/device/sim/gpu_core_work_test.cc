// A simulated GPU with work that ends, and with processes that wait for each other.
#include <gtest/gtest.h>

#include "zeus/device/sim/gpu_core.h"
#include "zeus/device/sim/gpu_model.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::sim {
namespace gpu_core_work_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

using testing::Model;

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
  EXPECT_NEAR(core.EndOf(id).value().count(), 1.0, 1e-9);
  core.AdvanceTo(999ms);
  EXPECT_TRUE(core.EndOf(id).ok());
  core.AdvanceTo(10s);
  EXPECT_EQ(core.EndOf(id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(core.exact_power() < 51_W, true);
}

TEST_F(GpuCoreWorkTest, OnlyTheArithmeticTakesLongerAtALowerClock) {
  Lock(705_MHz);  // Half of the highest.
  const std::uint32_t id = core.AttachLoad(Computation()).value();
  EXPECT_NEAR(core.EndOf(id).value().count(), 0.1 + 2 * 0.9, 1e-9);
}

TEST_F(GpuCoreWorkTest, AClockThatChangesMeanwhileMovesTheEnd) {
  const std::uint32_t id = core.AttachLoad(Computation()).value();
  core.AdvanceTo(250ms);
  Lock(705_MHz);
  // Three quarters of the work are left, at 1.9 s for all of it.
  EXPECT_NEAR(core.EndOf(id).value().count(), 0.25 + 0.75 * 1.9, 1e-9);
  core.AdvanceTo(1s);
  Lock(1410_MHz);
  EXPECT_NEAR(core.EndOf(id).value().count(), 1 + (0.75 - 0.75 / 1.9), 1e-9);
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

}  // namespace gpu_core_work_test
}  // namespace zeus::sim
