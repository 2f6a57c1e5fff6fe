// Tests the NVML adapter over the simulated driver library: the whole chain of a real machine, from
// dlopen() to the counter, over a node whose true values are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/places.h"
#include "zeus/device/nvml/nvml_gpu.h"
#include "zeus/device/nvml/nvml_session.h"
#include "zeus/device/privilege.h"
#include "zeus/device/sim/testing/driver_node.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::nvml {
namespace nvml_over_simulator_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using sim::FaultKind;
using sim::testing::Draw;
using sim::testing::DriverNode;
using ::testing::HasSubstr;
using zeus::testing::HoldsInAChild;

std::unique_ptr<NvmlGpu> OpenGpu(unsigned index = 0) {
  auto session = NvmlSession::Open(LoadNvml(zeus::testing::SimulatedDriver()).value()).value();
  Device device = nullptr;
  Call(session->api().get_handle_by_index, index, &device);
  return NvmlGpu::Open(std::move(session), device, "gpu:" + std::to_string(index)).value();
}

struct SimulatedDriverFactory {
  explicit SimulatedDriverFactory(const char* model) : node(model) { node.Attach(Draw(150_W)); }

  std::unique_ptr<Gpu> Make() { return OpenGpu(); }
  void Advance(Seconds by) { node.Advance(by); }

  DriverNode node;
};

zeus::testing::GpuCase OfModel(const char* id) {
  return zeus::testing::GpuCaseOf<SimulatedDriverFactory>(id, id);
}

class NvmlOverSimulatorTest : public ::testing::Test {
 protected:
  DriverNode node_{"2xA100"};
  std::unique_ptr<NvmlGpu> gpu_ = OpenGpu();
};

TEST_F(NvmlOverSimulatorTest, TheCounterIsTheTruthTimesTheBoardsGain) {
  node_.Attach(Draw(300_W));
  node_.Advance(10s);
  const Joules before = gpu_->TotalEnergy().value();
  const Joules exact_before = node_.Snapshot().exact_energy();
  node_.Advance(1h);
  const Joules measured = gpu_->TotalEnergy().value() - before;
  const Joules exact = node_.Snapshot().exact_energy() - exact_before;
  const sim::BoardSensors board = node_.Snapshot().board_sensors();
  // The counter's update period and the real time of the test amount to less than 0.1 % of 1.08 MJ.
  EXPECT_NEAR(measured / (exact * board.gain + board.offset * 1h), 1.0, 1e-3);
  EXPECT_NEAR(exact / (300_W * 1h), 1.0, 1e-3);
}

TEST_F(NvmlOverSimulatorTest, EveryValueOfAReadingIsTheNodes) {
  node_.Attach(Draw(250_W));
  node_.Advance(30s);
  const GpuReading reading = gpu_->Read();
  const sim::GpuCore core = node_.Snapshot();
  EXPECT_NEAR(reading.instant_power.value() / core.power(PowerKind::kInstant).value(), 1.0, 1e-3);
  EXPECT_NEAR(reading.temperature.value().value(), core.temperature().value(), 1.0);
  EXPECT_EQ(reading.memory.value().total_bytes, core.memory().total_bytes);
  EXPECT_NEAR(reading.graphics_clock.value().value(), core.clock(ClockDomain::kGraphics).value(),
              1e6);
  EXPECT_EQ(reading.requested_limit.value(), core.power_limit().requested);
  EXPECT_EQ(gpu_->identity().uuid, core.uuid());
  EXPECT_EQ(gpu_->identity().pci_address, core.pci_address());
}

TEST_F(NvmlOverSimulatorTest, ALostGpuAnswersNothingUntilItIsBack) {
  node_.Advance(10s);
  const Joules before = gpu_->TotalEnergy().value();
  node_.Inject({.kind = FaultKind::kLost});
  const GpuReading reading = gpu_->Read();
  ASSERT_FALSE(reading.energy.ok());
  EXPECT_EQ(reading.energy.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(reading.energy.error().message, HasSubstr("fell off the bus"));
  EXPECT_FALSE(reading.temperature.ok());
  EXPECT_TRUE(OpenGpu(1)->Energy().ok());
  node_.ClearFaults();
  EXPECT_GE(gpu_->TotalEnergy().value(), before);
}

TEST_F(NvmlOverSimulatorTest, AGpuLostInTheMiddleOfAReadingGivesValuesOrReasons) {
  node_.Attach(Draw(200_W));
  node_.Advance(10s);
  node_.Inject({.kind = FaultKind::kLost, .probability = 0.5});
  int complete = 0;
  int failed = 0;
  const auto count = [&](const auto& part) {
    if (part.ok()) return ++complete;
    EXPECT_EQ(part.error().code, ErrorCode::kUnavailable) << part.error().message;
    return ++failed;
  };
  for (int i = 0; i < 50; ++i) {
    const GpuReading reading = gpu_->Read();
    count(reading.energy);
    count(reading.temperature);
    count(reading.memory);
    if (reading.instant_power.ok()) {
      EXPECT_GT(reading.instant_power.value(), 100_W);
    }
    if (reading.energy.ok()) {
      EXPECT_GT(reading.energy.value().total, 0_J);
    }
  }
  EXPECT_GT(complete, 0);
  EXPECT_GT(failed, 0);
}

TEST_F(NvmlOverSimulatorTest, ADriverReloadStartsANewEpoch) {
  node_.Advance(1min);
  const EnergyReading before = gpu_->Energy().value();
  node_.Inject({.kind = FaultKind::kDriverReload});
  node_.Advance(1s);
  const EnergyReading after = gpu_->Energy().value();
  EXPECT_EQ(after.epoch, before.epoch + 1);
  EXPECT_GE(after.total, before.total);
}

TEST_F(NvmlOverSimulatorTest, AFrozenCounterStandsStillInTheSameEpoch) {
  node_.Advance(10s);
  node_.Inject({.kind = FaultKind::kCounterFrozen});
  const EnergyReading before = gpu_->Energy().value();
  node_.Advance(1min);
  const EnergyReading after = gpu_->Energy().value();
  EXPECT_EQ(after.total, before.total);
  EXPECT_EQ(after.epoch, before.epoch);
}

TEST_F(NvmlOverSimulatorTest, AnOutOfBandCapIsEnforcedAndNotRequested) {
  node_.Inject({.kind = FaultKind::kOutOfBandCap, .cap = 200_W});
  const PowerLimit limit = gpu_->CurrentPowerLimit().value();
  EXPECT_EQ(limit.requested, 400_W);
  EXPECT_EQ(limit.enforced, 200_W);
  EXPECT_EQ(gpu_->Read().enforced_limit.value(), 200_W);
}

TEST_F(NvmlOverSimulatorTest, ARefusedSetterIsPermissionDeniedAndChangesNothing) {
  node_.Inject({.kind = FaultKind::kNoPermission});
  const auto set = gpu_->SetPowerLimitWithoutJournal(200_W);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(set.error().message, HasSubstr(std::string(RefusalAdvice())));
  EXPECT_EQ(gpu_->LockClockWithoutJournal(ClockDomain::kGraphics,
                                          {.min = Hertz(0), .max = Hertz::FromMega(1410)})
                .error()
                .code,
            ErrorCode::kPermissionDenied);
  EXPECT_EQ(gpu_->CurrentPowerLimit().value().requested, 400_W);
}

TEST_F(NvmlOverSimulatorTest, ASlowDriverIsWaitedFor) {
  SystemClock clock;
  node_.Inject({.kind = FaultKind::kSlowCall, .delay = 20ms});
  const TimePoint before = clock.Now();
  EXPECT_TRUE(gpu_->Temperature().ok());
  EXPECT_GE(clock.Now() - before, Seconds(20ms));
}

TEST_F(NvmlOverSimulatorTest, APartitionedGpuCountsEnergyAndHasNoUtilization) {
  node_.Inject({.kind = FaultKind::kMigEnabled});
  EXPECT_EQ(gpu_->CurrentUtilization().error().code, ErrorCode::kNotSupported);
  const GpuReading reading = OpenGpu()->Read();
  EXPECT_EQ(reading.utilization.error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(reading.utilization.error().message, HasSubstr("MIG mode"));
  EXPECT_TRUE(reading.energy.ok());
}

TEST_F(NvmlOverSimulatorTest, ParentAndChildBothGoOnReading) {
  node_.Attach(Draw(200_W));
  node_.Advance(10s);
  const Joules before = gpu_->TotalEnergy().value();
  EXPECT_TRUE(HoldsInAChild([&] {
    node_.Advance(10s);
    const auto energy = gpu_->TotalEnergy();
    return energy.ok() && energy.value() > before + 1000_J && gpu_->Read().temperature.ok();
  }));
  // The child advanced the time of the node, which both processes share.
  const Joules after = gpu_->TotalEnergy().value();
  EXPECT_GT(after, before + 1000_J);
  EXPECT_LT(after, before + 5000_J);
}

TEST_F(NvmlOverSimulatorTest, SeesWhatAnotherProcessChanged) {
  EXPECT_TRUE(HoldsInAChild([&] {
    auto node = node_.directory().Open(DriverNode::kName, sim::Access::kWrite);
    return node.ok() && node.value()
                            .Update(0, [](sim::GpuCore& core) { return core.SetPowerLimit(250_W); })
                            .ok();
  }));
  EXPECT_EQ(gpu_->CurrentPowerLimit().value().requested, 250_W);
}

TEST_F(NvmlOverSimulatorTest, AStoppedNodeIsALostGpu) {
  ASSERT_TRUE(node_.directory().Remove(DriverNode::kName).ok());
  EXPECT_EQ(gpu_->Energy().error().code, ErrorCode::kUnavailable);
}

using zeus::testing::GpuConformance;
INSTANTIATE_TEST_SUITE_P(NvmlOverSimulator, GpuConformance,
                         ::testing::Values(OfModel("P100"), OfModel("V100"), OfModel("A100"),
                                           OfModel("H100")),
                         zeus::testing::NameOfCase());

}  // namespace nvml_over_simulator_test
}  // namespace zeus::nvml
