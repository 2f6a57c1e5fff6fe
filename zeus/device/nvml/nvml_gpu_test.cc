#include "zeus/device/nvml/nvml_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/device/nvml/testing/fake_nvml.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::nvml {
namespace nvml_gpu_test {

using testing::FakeBoard;
using testing::FakeNvml;
using ::testing::HasSubstr;
using namespace zeus::literals;

class NvmlGpuTest : public ::testing::Test {
 protected:
  // After the test has shaped the board: sensors are probed here.
  NvmlGpu& Open() {
    auto session = NvmlSession::Open(api_);
    gpu_ = NvmlGpu::Open(session.value(), fake_.handle(), "gpu:0").value();
    fake_.board().calls.clear();
    return *gpu_;
  }

  FakeBoard& board() { return fake_.board(); }

  FakeNvml fake_;
  NvmlApi api_ = fake_.api();
  std::unique_ptr<NvmlGpu> gpu_;
};

TEST_F(NvmlGpuTest, KnowsItsIdentity) {
  board().bus = 0xAF;
  const GpuIdentity& identity = Open().identity();
  EXPECT_EQ(identity.uuid, "GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(identity.pci_address, "0000:af:00.0");
  EXPECT_EQ(identity.model, "Tesla V100-PCIE-16GB");
  EXPECT_EQ(identity.driver, "550.54.15");
  EXPECT_EQ(identity.vendor, Vendor::kNvidia);
}

TEST_F(NvmlGpuTest, ReadsEverythingInOurUnits) {
  board().memory_power = 20'000;
  board().out_of_band_limit = 200'000;
  board().reasons = kReasonSoftwarePowerCap | kReasonHardwareSlowdown | kReasonPowerBrake;
  const GpuReading reading = Open().Read();
  EXPECT_EQ(reading.energy.value().total, 5000_J);
  EXPECT_EQ(reading.energy.value().taken_at->time_since_epoch().count(), 1'700'000'000'000'000);
  EXPECT_EQ(reading.instant_power.value(), 120_W);
  EXPECT_EQ(reading.average_power.value(), 110_W);
  EXPECT_EQ(reading.memory_power.value(), 20_W);
  EXPECT_EQ(reading.requested_limit.value(), 250_W);
  EXPECT_EQ(reading.enforced_limit.value(), 200_W);
  EXPECT_EQ(reading.temperature.value(), 61_degC);
  EXPECT_EQ(reading.utilization.value().compute, 0.97);
  EXPECT_EQ(reading.memory.value().used_bytes, 4ULL << 30U);
  EXPECT_EQ(reading.graphics_clock.value(), 1380_MHz);
  EXPECT_EQ(reading.memory_clock.value(), 877_MHz);
  EXPECT_TRUE(reading.throttle.value().power_cap);
  EXPECT_FALSE(reading.throttle.value().thermal);
  EXPECT_FALSE(reading.throttle.value().other);
}

TEST_F(NvmlGpuTest, AReadingIsOneBatchAndNoOlderCall) {
  Open().Read();
  EXPECT_EQ(fake_.calls("get_field_values"), 1);
  EXPECT_EQ(fake_.calls("get_total_energy"), 0);
  EXPECT_EQ(fake_.calls("get_power_usage"), 0);
  EXPECT_EQ(fake_.calls("get_power_limit"), 0);
  EXPECT_EQ(fake_.calls("get_enforced_power_limit"), 0);
  EXPECT_EQ(fake_.calls("get_temperature"), 0);
  EXPECT_EQ(fake_.calls("get_memory_info"), 0);
}

TEST_F(NvmlGpuTest, ADecreasingCounterStartsANewEpoch) {
  NvmlGpu& gpu = Open();
  EXPECT_EQ(gpu.Energy().value().epoch, 0U);
  board().energy = 2'000;
  const EnergyReading restarted = gpu.Energy().value();
  EXPECT_EQ(restarted.epoch, 1U);
  EXPECT_EQ(restarted.total, 5002_J);
  board().energy = 3'000;
  EXPECT_EQ(gpu.Read().energy.value().total, 5003_J);
}

TEST_F(NvmlGpuTest, TheModuleServesWhereTheGpuHasNoFields) {
  board().scope = kScopeModule;
  api_.get_total_energy = nullptr;
  api_.get_power_usage = nullptr;
  api_.get_power_limit = nullptr;
  api_.get_enforced_power_limit = nullptr;
  api_.get_power_limit_constraints = nullptr;
  NvmlGpu& gpu = Open();
  const GpuReading reading = gpu.Read();
  EXPECT_EQ(reading.energy.value().total, 5000_J);
  EXPECT_EQ(reading.instant_power.value(), 120_W);
  EXPECT_EQ(reading.average_power.value(), 110_W);
  EXPECT_EQ(reading.requested_limit.value(), 250_W);
  EXPECT_EQ(gpu.CurrentPowerLimit().value().range.min, 100_W);
  EXPECT_EQ(fake_.calls("get_field_values"), 2);
}

TEST_F(NvmlGpuTest, AnOldDriverWithoutFieldsServesThroughFunctions) {
  api_.get_field_values = nullptr;
  api_.get_temperature_v = nullptr;
  api_.get_memory_info_v2 = nullptr;
  NvmlGpu& gpu = Open();
  const GpuReading reading = gpu.Read();
  EXPECT_EQ(reading.energy.value().total, 5000_J);
  EXPECT_FALSE(reading.energy.value().taken_at.has_value());
  EXPECT_EQ(reading.instant_power.value(), 120_W);
  EXPECT_EQ(reading.requested_limit.value(), 250_W);
  EXPECT_EQ(reading.enforced_limit.value(), 250_W);
  EXPECT_EQ(reading.temperature.value(), 60_degC);
  EXPECT_EQ(reading.memory.value().used_bytes, 5ULL << 30U);
  EXPECT_EQ(reading.average_power.error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(reading.average_power.error().message, HasSubstr("a newer NVIDIA driver may"));
  EXPECT_EQ(gpu.SetPowerLimitWithoutJournal(150_W).value().requested, 150_W);
}

TEST_F(NvmlGpuTest, FieldsThatAnOldDriverDoesNotKnowAreNotAskedForAgain) {
  board().unknown_fields = {kFieldEnergy, kFieldPowerInstant, kFieldPowerAverage};
  NvmlGpu& gpu = Open();
  EXPECT_EQ(gpu.Read().energy.value().total, 5000_J);  // Field 83.
  EXPECT_EQ(fake_.calls("get_field_values"), 1);
  EXPECT_EQ(gpu.Power(PowerKind::kInstant).value(), 120_W);
  EXPECT_EQ(fake_.calls("get_power_usage"), 2);
}

TEST_F(NvmlGpuTest, TheOldPowerCallIsAnAverageFromAmpereOnButNotOnGa100) {
  board().unknown_fields = {kFieldPowerInstant, kFieldPowerAverage};
  board().architecture = kArchitectureAmpere;
  board().pci_device_id = 0x223510de;  // A40.
  EXPECT_EQ(Open().Power(PowerKind::kOneSecondAverage).value(), 120_W);
  EXPECT_FALSE(gpu_->Power(PowerKind::kInstant).ok());
  EXPECT_EQ(gpu_->Power().value(), 120_W);
  board().pci_device_id = 0x20b010de;  // A100.
  EXPECT_EQ(Open().Power(PowerKind::kInstant).value(), 120_W);
  EXPECT_FALSE(gpu_->Power(PowerKind::kOneSecondAverage).ok());
}

TEST_F(NvmlGpuTest, AnUnsupportedCounterIsAReasonAndCostsNoCall) {
  board().unsupported_fields = {kFieldEnergy, kFieldTotalEnergy};
  board().refusals["get_total_energy"] = kNotSupported;
  NvmlGpu& gpu = Open();
  const auto energy = gpu.Energy();
  ASSERT_FALSE(energy.ok());
  EXPECT_EQ(energy.error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(energy.error().message, "gpu:0: read energy: not supported by this GPU or its mode");
  EXPECT_TRUE(board().calls.empty());
  EXPECT_TRUE(gpu.Power().ok());
}

TEST_F(NvmlGpuTest, UnsupportedScalarSensorsAreRemembered) {
  board().refusals["get_utilization"] = kNotSupported;
  NvmlGpu& gpu = Open();
  EXPECT_EQ(gpu.Read().utilization.error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(gpu.CurrentUtilization().error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(fake_.calls("get_utilization"), 0);
}

TEST_F(NvmlGpuTest, APassingFailureAtTheStartIsNotRemembered) {
  board().refusals["get_utilization"] = kUnknown;
  board().refusals["get_field_values"] = kTimeout;
  NvmlGpu& gpu = Open();
  EXPECT_TRUE(gpu.Read().energy.error().retryable());
  board().refusals.clear();
  EXPECT_TRUE(gpu.Read().energy.ok());
  EXPECT_TRUE(gpu.Read().utilization.ok());
  EXPECT_EQ(gpu.CurrentPowerLimit().value().range.max, 250_W);
}

TEST_F(NvmlGpuTest, NoMemoryPowerIsNotZeroMemoryPower) {
  board().memory_power = 0;
  const auto power = Open().Power(PowerKind::kMemory);
  ASSERT_FALSE(power.ok());
  EXPECT_EQ(power.error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(gpu_->Read().memory_power.error().code, ErrorCode::kNotSupported);
}

TEST_F(NvmlGpuTest, ValuesAreDecodedByTheirType) {
  board().value_type = kValueDouble;
  EXPECT_EQ(Open().Read().instant_power.value(), 120_W);
  board().value_type = 42;
  EXPECT_EQ(gpu_->Read().instant_power.error().code, ErrorCode::kInternal);
}

TEST_F(NvmlGpuTest, AGpuLostBetweenReadingsFailsEveryValueAndMayComeBack) {
  NvmlGpu& gpu = Open();
  ASSERT_TRUE(gpu.Energy().ok());
  board().failure = kGpuIsLost;
  const GpuReading lost = gpu.Read();
  EXPECT_EQ(lost.energy.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(lost.energy.error().message, HasSubstr("fell off the bus"));
  EXPECT_EQ(lost.temperature.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(gpu.SetPowerLimitWithoutJournal(150_W).error().code, ErrorCode::kUnavailable);
  board().failure = kSuccess;
  board().energy = 100;
  EXPECT_EQ(gpu.Energy().value().epoch, 1U);
}

TEST_F(NvmlGpuTest, AGpuLostInTheMiddleOfAReadingKeepsTheRest) {
  NvmlGpu& gpu = Open();
  board().refusals["get_temperature_v"] = kGpuIsLost;
  const GpuReading reading = gpu.Read();
  EXPECT_TRUE(reading.energy.ok());
  EXPECT_EQ(reading.temperature.error().code, ErrorCode::kUnavailable);
}

TEST_F(NvmlGpuTest, ALostGpuCannotBeOpened) {
  auto session = NvmlSession::Open(api_).value();
  board().failure = kGpuIsLost;
  EXPECT_EQ(NvmlGpu::Open(session, fake_.handle(), "gpu:0").error().code, ErrorCode::kUnavailable);
  board().failure = kSuccess;
  board().refusals["get_field_values"] = kResetRequired;
  EXPECT_THAT(NvmlGpu::Open(session, fake_.handle(), "gpu:0").error().message,
              HasSubstr("must be reset"));
}

TEST_F(NvmlGpuTest, ThrottleReasonsAreGrouped) {
  NvmlGpu& gpu = Open();
  board().reasons = kReasonHardwareSlowdown;
  EXPECT_TRUE(gpu.CurrentThrottleReasons().value().other);
  board().reasons = kReasonHardwareSlowdown | kReasonHardwareThermal;
  EXPECT_TRUE(gpu.CurrentThrottleReasons().value().thermal);
  EXPECT_FALSE(gpu.CurrentThrottleReasons().value().other);
  board().reasons = kReasonIdle | kReasonApplicationsClocks;
  EXPECT_TRUE(gpu.CurrentThrottleReasons().value().idle);
  EXPECT_TRUE(gpu.CurrentThrottleReasons().value().locked_clock);
  board().reasons = 1ULL << 40U;
  EXPECT_TRUE(gpu.CurrentThrottleReasons().value().other);
}

class NvmlGpuKnobsTest : public ::testing::Test {
 protected:
  FakeBoard& board() { return fake_.board(); }

  FakeNvml fake_;
  std::unique_ptr<NvmlGpu> gpu_ =
      NvmlGpu::Open(NvmlSession::Open(fake_.api()).value(), fake_.handle(), "gpu:0").value();
};

TEST_F(NvmlGpuKnobsTest, SetsThePowerLimitAndReadsItBack) {
  const auto limit = gpu_->SetPowerLimitWithoutJournal(150_W);
  ASSERT_TRUE(limit.ok()) << limit.error().message;
  EXPECT_EQ(board().requested_limit, 150'000U);
  EXPECT_EQ(limit.value().requested, 150_W);
  EXPECT_EQ(limit.value().enforced, 150_W);
  EXPECT_EQ(limit.value().range.max, 250_W);
  EXPECT_EQ(limit.value().default_limit, 250_W);
}

TEST_F(NvmlGpuKnobsTest, AStricterLimitFromOutsideIsReportedNotRefused) {
  board().out_of_band_limit = 130'000;
  const auto limit = gpu_->SetPowerLimitWithoutJournal(200_W);
  ASSERT_TRUE(limit.ok());
  EXPECT_EQ(limit.value().requested, 200_W);
  EXPECT_EQ(limit.value().enforced, 130_W);
}

TEST_F(NvmlGpuKnobsTest, ALimitThatTheDriverOnlyPretendsToTakeIsAnError) {
  board().ignores_setters = true;
  const auto limit = gpu_->SetPowerLimitWithoutJournal(150_W);
  ASSERT_FALSE(limit.ok());
  EXPECT_EQ(limit.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(limit.error().message, HasSubstr("the limit is now 250 W"));
}

TEST_F(NvmlGpuKnobsTest, ARefusedSetterSaysWhoMay) {
  board().refusals["set_power_limit"] = kNoPermission;
  board().refusals["set_graphics_clock_lock"] = kNoPermission;
  board().refusals["set_persistence"] = kNoPermission;
  const Status statuses[] = {
      [&]() -> Status {
        auto limit = gpu_->SetPowerLimitWithoutJournal(150_W);
        if (!limit.ok()) return limit.error();
        return Ok();
      }(),
      gpu_->LockClockWithoutJournal(ClockDomain::kGraphics, {.min = 900_MHz, .max = 900_MHz}),
      gpu_->SetPersistence(Persistence::kOn)};
  for (const Status& status : statuses) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kPermissionDenied);
    EXPECT_THAT(status.error().message, HasSubstr(std::string(RefusalAdvice())));
  }
}

TEST_F(NvmlGpuKnobsTest, ALimitOutsideTheRangeNeverReachesTheDriver) {
  const auto limit = gpu_->SetPowerLimitWithoutJournal(251_W);
  ASSERT_FALSE(limit.ok());
  EXPECT_EQ(limit.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(limit.error().message, "gpu:0: a power limit of 251 W is outside 100 W to 250 W");
  EXPECT_EQ(fake_.calls("set_power_limit"), 0);
}

TEST_F(NvmlGpuKnobsTest, ListsClocksAscendingEvenIfTheyAreMany) {
  const auto clocks = gpu_->SupportedClocks(ClockDomain::kGraphics);
  ASSERT_TRUE(clocks.ok()) << clocks.error().message;
  EXPECT_EQ(clocks.value().size(), 416U);
  EXPECT_EQ(clocks.value().front(), 135_MHz);
  EXPECT_EQ(clocks.value().back(), 1380_MHz);
  EXPECT_EQ(gpu_->SupportedClocks(ClockDomain::kMemory).value().front(), 405_MHz);
}

TEST_F(NvmlGpuKnobsTest, LocksAndResetsTheGraphicsClock) {
  ASSERT_TRUE(
      gpu_->LockClockWithoutJournal(ClockDomain::kGraphics, {.min = 135_MHz, .max = 900_MHz}).ok());
  EXPECT_EQ(gpu_->CurrentClock(ClockDomain::kGraphics).value(), 900_MHz);
  ASSERT_TRUE(gpu_->ResetClock(ClockDomain::kGraphics).ok());
  EXPECT_EQ(gpu_->CurrentClock(ClockDomain::kGraphics).value(), 1380_MHz);
}

TEST_F(NvmlGpuKnobsTest, AClockThatDoesNotExistNeverReachesTheDriver) {
  const Status between =
      gpu_->LockClockWithoutJournal(ClockDomain::kGraphics, {.min = 136_MHz, .max = 137_MHz});
  ASSERT_FALSE(between.ok());
  EXPECT_EQ(between.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(between.error().message, HasSubstr("from 135 to 1380 MHz"));
  EXPECT_EQ(fake_.calls("set_graphics_clock_lock"), 0);
}

TEST_F(NvmlGpuKnobsTest, ABoardThatHidesItsClocksCanStillBeLocked) {
  board().refusals["get_memory_clocks"] = kNotSupported;
  EXPECT_TRUE(
      gpu_->LockClockWithoutJournal(ClockDomain::kGraphics, {.min = 900_MHz, .max = 900_MHz}).ok());
}

TEST_F(NvmlGpuKnobsTest, AMemoryClockThatCannotBeLockedIsNotSupported) {
  const Status locked =
      gpu_->LockClockWithoutJournal(ClockDomain::kMemory, {.min = 405_MHz, .max = 405_MHz});
  EXPECT_EQ(locked.error().code, ErrorCode::kNotSupported);
}

TEST_F(NvmlGpuKnobsTest, PersistenceIsReadBack) {
  EXPECT_TRUE(gpu_->SetPersistence(Persistence::kOn).ok());
  EXPECT_EQ(gpu_->CurrentPersistence().value(), Persistence::kOn);
  board().ignores_setters = true;
  EXPECT_EQ(gpu_->SetPersistence(Persistence::kOff).error().code, ErrorCode::kUnavailable);
}

// The same promises over a complete driver, an old one, and one that refuses every knob.
using Shape = void (*)(FakeNvml&, NvmlApi&);

struct ShapedFactory {
  explicit ShapedFactory(Shape of_driver) : shape(of_driver) {}

  std::unique_ptr<Gpu> Make() {
    NvmlApi api = fake.api();
    shape(fake, api);
    fake.board().energy_per_read = 10;
    return NvmlGpu::Open(NvmlSession::Open(api).value(), fake.handle(), "gpu:0").value();
  }
  void Advance(Seconds by) {
    fake.board().energy += static_cast<unsigned long long>(by.count() * 120'000);
  }

  const Shape shape;
  FakeNvml fake;
};

void Complete(FakeNvml& /*fake*/, NvmlApi& /*api*/) {}
void Old(FakeNvml& /*fake*/, NvmlApi& api) {
  api.get_field_values = nullptr;
  api.get_temperature_v = nullptr;
  api.get_memory_info_v2 = nullptr;
  api.get_clocks_event_reasons = nullptr;
  api.set_graphics_clock_lock = nullptr;
  api.reset_graphics_clock_lock = nullptr;
}
void Unprivileged(FakeNvml& fake, NvmlApi& /*api*/) {
  for (const char* setter : {"set_power_limit", "set_graphics_clock_lock",
                             "reset_graphics_clock_lock", "set_persistence"})
    fake.board().refusals[setter] = kNoPermission;
}

using zeus::testing::GpuConformance;
INSTANTIATE_TEST_SUITE_P(
    NvmlOverAFakeDriver, GpuConformance,
    ::testing::Values(zeus::testing::GpuCaseOf<ShapedFactory>("Complete", Complete),
                      zeus::testing::GpuCaseOf<ShapedFactory>("Old", Old),
                      zeus::testing::GpuCaseOf<ShapedFactory>("Unprivileged", Unprivileged)),
    zeus::testing::NameOfCase());

}  // namespace nvml_gpu_test
}  // namespace zeus::nvml
