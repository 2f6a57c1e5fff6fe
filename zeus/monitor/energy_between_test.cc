#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/testing/scripted_meter.h"

namespace zeus {
namespace energy_between_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using zeus::testing::RecordUntil;
using zeus::testing::ScriptedMeter;

constexpr TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

class EnergyBetweenTest : public ::testing::Test {
 protected:
  void Until(EnergyMonitor& monitor, double seconds) { RecordUntil(clock_, monitor, At(seconds)); }

  VirtualClock clock_;
  ScriptedMeter meter_{clock_, {.counter_period = 100ms, .phase = 37ms}};
};

TEST_F(EnergyBetweenTest, IsThatOfAWindow) {
  meter_.SetPower(At(0), 100_W);
  meter_.SetPower(At(4), 300_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, 10);
  const auto energy = monitor.EnergyBetween(0, At(2), At(8));
  ASSERT_TRUE(energy.ok()) << energy.error().message;
  EXPECT_NEAR(energy.value().energy.value(), 2 * 100 + 4 * 300, 1);
  EXPECT_LT(energy.value().sigma, 200_J);
}

TEST_F(EnergyBetweenTest, LongForgottenDetailsStillAddUp) {
  constexpr double kHour = 3600;
  meter_.SetPower(At(0), 100_W);
  for (double time = 0; time < kHour; time += 2) {
    meter_.SetPower(At(time), 100_W);
    meter_.SetPower(At(time + 1), 300_W);
  }
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, kHour);
  const auto energy = monitor.EnergyBetween(0, At(200), At(kHour - 10));
  ASSERT_TRUE(energy.ok()) << energy.error().message;
  const double exact = meter_.ExactEnergy(At(200), At(kHour - 10)).value();
  EXPECT_NEAR(energy.value().energy.value(), exact, 0.001 * exact);
  EXPECT_NEAR(monitor.EnergyBetween(0, At(200), At(300)).value().energy.value(),
              meter_.ExactEnergy(At(200), At(300)).value(), 0.02 * 20000);
}

TEST_F(EnergyBetweenTest, AnEndBeforeTheBeginIsRefused) {
  meter_.SetPower(At(0), 100_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, 2);
  const auto energy = monitor.EnergyBetween(0, At(1), At(0.5));
  ASSERT_FALSE(energy.ok());
  EXPECT_EQ(energy.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EnergyBetweenTest, NothingIsGuessedAboutADeviceThatDoesNotAnswer) {
  meter_.SetPower(At(0), 100_W);
  EnergyMonitor monitor(clock_, {{.meter = &meter_}});
  Until(monitor, 10);
  meter_.Fail(Error{ErrorCode::kUnavailable, "lost"});
  Until(monitor, 20);
  EXPECT_EQ(monitor.EnergyBetween(0, At(15), At(20)).error().message, "lost");
  const auto half = monitor.EnergyBetween(0, At(5), At(15));
  ASSERT_TRUE(half.ok()) << half.error().message;
  EXPECT_NEAR(half.value().energy.value(), 500, 25);
  EXPECT_GT(half.value().sigma, 400_J);
  EXPECT_TRUE(half.value().flags.Has(MeasurementFlag::kPartial));
}

TEST_F(EnergyBetweenTest, AverageAndMemoryPowerAreRecordedWithTheTelemetry) {
  sim::SimulatedGpu gpu(clock_, sim::testing::Model("H100"));
  EnergyMonitor monitor(clock_, {{.meter = &gpu, .gpu = &gpu}},
                        {.telemetry_interval = Seconds(0.5)});
  Until(monitor, 10);
  const auto average =
      monitor.History(0, EnergyMonitor::Quantity::kAveragePower, At(0), clock_.Now());
  ASSERT_FALSE(average.empty());
  EXPECT_NEAR(average.back().value, gpu.Power(PowerKind::kOneSecondAverage).value().value(), 5);
  const auto memory =
      monitor.History(0, EnergyMonitor::Quantity::kMemoryPower, At(0), clock_.Now());
  ASSERT_FALSE(memory.empty());
  EXPECT_LT(memory.back().value, average.back().value);
}

}  // namespace energy_between_test
}  // namespace zeus
