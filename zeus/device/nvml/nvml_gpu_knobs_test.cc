#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/device/nvml/nvml_gpu.h"
#include "zeus/device/nvml/testing/fake_nvml.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::nvml {
namespace nvml_gpu_knobs_test {

using testing::FakeBoard;
using testing::FakeNvml;
using ::testing::HasSubstr;
using namespace zeus::literals;

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

}  // namespace nvml_gpu_knobs_test
}  // namespace zeus::nvml
