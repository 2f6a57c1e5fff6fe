#include "zeus/device/sim/simulated_gpu.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "zeus/device/sim/testing/loads.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::sim {
namespace simulated_gpu_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

using testing::Draw;
using testing::Model;

class SimulatedGpuTest : public ::testing::Test {
 protected:
  VirtualClock clock_;
  SimulatedGpu gpu_{clock_, Model("A100"), {.seed = 3, .index = 0}};
};

TEST_F(SimulatedGpuTest, EnergyIsPowerTimesTimeWithinTheBoardsGain) {
  ASSERT_TRUE(gpu_.AttachLoad(Draw(300_W)).ok());
  clock_.Advance(1min);
  const Joules before = gpu_.Energy().value().total;
  const Joules exact_before = gpu_.ExactEnergy();
  clock_.Advance(1h);
  const Joules measured = gpu_.Energy().value().total - before;
  EXPECT_NEAR(measured / (300_W * 1h), gpu_.Snapshot().board_sensors().gain, 0.01);
  EXPECT_NEAR((gpu_.ExactEnergy() - exact_before) / (300_W * 1h), 1.0, 1e-3);
}

TEST_F(SimulatedGpuTest, ADriverReloadStartsANewEpoch) {
  clock_.Advance(1min);
  const auto before = gpu_.Energy();
  gpu_.InjectFault({.kind = FaultKind::kDriverReload});
  clock_.Advance(1s);
  const auto after = gpu_.Energy();
  EXPECT_EQ(after.value().epoch, before.value().epoch + 1);
  EXPECT_GE(after.value().total, before.value().total);
}

TEST_F(SimulatedGpuTest, ALostGpuAnswersNothing) {
  gpu_.InjectFault({.kind = FaultKind::kLost});
  EXPECT_EQ(gpu_.Energy().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(gpu_.Temperature().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(gpu_.SetPowerLimitWithoutJournal(200_W).error().code, ErrorCode::kUnavailable);
  const GpuReading reading = gpu_.Read();
  EXPECT_FALSE(reading.energy.ok());
  EXPECT_FALSE(reading.throttle.ok());
  gpu_.ClearFaults();
  EXPECT_TRUE(gpu_.Energy().ok());
}

TEST_F(SimulatedGpuTest, ARefusedSetterChangesNothing) {
  gpu_.InjectFault({.kind = FaultKind::kNoPermission});
  EXPECT_EQ(gpu_.SetPowerLimitWithoutJournal(200_W).error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(gpu_.CurrentPowerLimit().value().requested, 400_W);
  gpu_.ClearFaults();
  gpu_.InjectFault({.kind = FaultKind::kSetterUnsupported});
  EXPECT_EQ(gpu_.ResetClock(ClockDomain::kGraphics).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(gpu_.SetPersistence(Persistence::kOff).error().code, ErrorCode::kNotSupported);
}

TEST_F(SimulatedGpuTest, AnOutOfBandCapIsEnforcedAndNotRequested) {
  gpu_.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 200_W});
  const auto limit = gpu_.SetPowerLimitWithoutJournal(300_W);
  ASSERT_TRUE(limit.ok());
  EXPECT_EQ(limit.value().requested, 300_W);
  EXPECT_EQ(limit.value().enforced, 200_W);
}

TEST_F(SimulatedGpuTest, ASlowCallTakesItsTime) {
  gpu_.InjectFault({.kind = FaultKind::kSlowCall, .delay = 50ms});
  const TimePoint before = clock_.Now();
  ASSERT_TRUE(gpu_.Temperature().ok());
  EXPECT_NEAR((clock_.Now() - before).count(), 0.050, 1e-12);
}

TEST_F(SimulatedGpuTest, PowerMayBeUnavailableNowAndThen) {
  gpu_.InjectFault({.kind = FaultKind::kPowerUnavailable, .probability = 0.25});
  int failed = 0;
  for (int i = 0; i < 10000; ++i) failed += gpu_.Power(PowerKind::kInstant).ok() ? 0 : 1;
  EXPECT_NEAR(failed / 10000.0, 0.25, 0.02);
}

TEST_F(SimulatedGpuTest, APartitionedGpuHasNoUtilization) {
  gpu_.InjectFault({.kind = FaultKind::kMigEnabled});
  EXPECT_EQ(gpu_.CurrentUtilization().error().code, ErrorCode::kNotSupported);
  EXPECT_TRUE(gpu_.Energy().ok());
}

// The readings that a program gets during a run with loads, knobs and faults.
std::vector<double> Readings(std::uint64_t seed) {
  VirtualClock clock;
  SimulatedGpu gpu(clock, Model("H100"), {.seed = seed, .index = 2});
  gpu.InjectFault({.kind = FaultKind::kPowerUnavailable, .probability = 0.1});
  EXPECT_TRUE(gpu.AttachLoad(testing::Train("resnet50", 256)).ok());
  std::vector<double> seen;
  for (int i = 0; i < 500; ++i) {
    clock.Advance(7ms);
    if (i % 50 == 0) (void)gpu.SetPowerLimitWithoutJournal(Watts(300.0 + i / 2));
    const auto power = gpu.Power(PowerKind::kInstant);
    seen.push_back(power.ok() ? power.value().value() : -1.0);
    seen.push_back(gpu.Energy().value().total.value());
    seen.push_back(gpu.Temperature().value().value());
  }
  return seen;
}

TEST(SimulatedGpuDeterminismTest, TheSameSeedGivesTheSameBytes) {
  const std::vector<double> first = Readings(11);
  const std::vector<double> second = Readings(11);
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(double)), 0);
  EXPECT_NE(first, Readings(12));
}

TEST(SimulatedGpuDeterminismTest, RunsOnTheSystemClockToo) {
  SystemClock clock;
  SimulatedGpu gpu(clock, Model("V100"));
  ASSERT_TRUE(gpu.AttachLoad(Draw(200_W)).ok());
  const Joules first = gpu.ExactEnergy();
  EXPECT_GE(gpu.ExactEnergy(), first);
  EXPECT_GT(gpu.ExactPower(), 190_W);
}

struct SimulatedGpuFactory {
  explicit SimulatedGpuFactory(const char* model_id) : model(Model(model_id)) {}

  std::unique_ptr<Gpu> Make() { return std::make_unique<SimulatedGpu>(clock, model); }
  void Advance(Seconds by) { clock.Advance(by); }

  const GpuModel& model;
  VirtualClock clock;
};

zeus::testing::GpuCase OfModel(const char* id) {
  return zeus::testing::GpuCaseOf<SimulatedGpuFactory>(id, id);
}

using zeus::testing::GpuConformance;
INSTANTIATE_TEST_SUITE_P(Simulated, GpuConformance,
                         ::testing::Values(OfModel("P100"), OfModel("V100"), OfModel("A100"),
                                           OfModel("A40"), OfModel("H100")),
                         zeus::testing::NameOfCase());

}  // namespace simulated_gpu_test
}  // namespace zeus::sim
