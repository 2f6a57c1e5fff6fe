#include "apps/zeus/llm/clock_knob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "zeus/base/clock.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus::cli {
namespace clock_knob_test {

using namespace zeus::literals;
using ::testing::HasSubstr;

// Readings of a clock follow within this time.
constexpr Seconds kSensorDelay{1.0};

class GuardedClockKnobTest : public ::testing::Test {
 protected:
  static const sim::GpuModel& Model() { return *sim::FindGpuModel("H100").value(); }

  // A busy GPU runs at the clock that it may.
  void MakeBusy() {
    for (sim::SimulatedGpu* gpu : {&first_, &second_})
      ASSERT_TRUE(gpu->AttachLoad(sim::testing::Draw(500_W)).ok());
  }

  VirtualClock clock_;
  sim::SimulatedGpu first_{clock_, Model(), {.seed = 1, .index = 0}};
  sim::SimulatedGpu second_{clock_, Model(), {.seed = 2, .index = 1}};
};

TEST_F(GuardedClockKnobTest, LocksAllGpusAndPutsThemBack) {
  MakeBusy();
  {
    auto knob = GuardedClockKnob::Make({&first_, &second_});
    ASSERT_TRUE(knob.ok()) << knob.error().message;
    EXPECT_EQ(knob.value()->name(), "graphics clock of gpu:0 to gpu:1");
    const auto supported = knob.value()->Supported();
    ASSERT_TRUE(supported.ok()) << supported.error().message;
    EXPECT_EQ(supported.value().front(), Model().graphics_clock.min);
    EXPECT_EQ(supported.value().back(), Model().graphics_clock.max);
    EXPECT_TRUE(std::ranges::is_sorted(supported.value()));

    ASSERT_TRUE(knob.value()->Lock(1200_MHz).ok());
    clock_.Advance(kSensorDelay);
    EXPECT_EQ(knob.value()->Present().value(), 1200_MHz);
    EXPECT_EQ(second_.CurrentClock(ClockDomain::kGraphics).value(), 1200_MHz);
    EXPECT_TRUE(knob.value()->IsOurs().value());
    ASSERT_TRUE(knob.value()->Lock(900_MHz).ok());
    clock_.Advance(kSensorDelay);
    EXPECT_EQ(knob.value()->Present().value(), 900_MHz);
  }
  clock_.Advance(kSensorDelay);
  EXPECT_GT(first_.CurrentClock(ClockDomain::kGraphics).value(), 1200_MHz);
  EXPECT_GT(second_.CurrentClock(ClockDomain::kGraphics).value(), 1200_MHz);
}

TEST_F(GuardedClockKnobTest, AGpuThatRefusesLeavesNoneLocked) {
  MakeBusy();
  auto knob = GuardedClockKnob::Make({&first_, &second_});
  ASSERT_TRUE(knob.ok()) << knob.error().message;
  second_.InjectFault({.kind = sim::FaultKind::kNoPermission});
  EXPECT_FALSE(knob.value()->Lock(900_MHz).ok());
  clock_.Advance(kSensorDelay);
  EXPECT_GT(first_.CurrentClock(ClockDomain::kGraphics).value(), 1200_MHz);
}

TEST_F(GuardedClockKnobTest, AClockThatWasLockedBeforeIsNotOurs) {
  MakeBusy();
  ASSERT_TRUE(
      first_.LockClockWithoutJournal(ClockDomain::kGraphics, {.min = 1005_MHz, .max = 1005_MHz})
          .ok());
  clock_.Advance(kSensorDelay);
  auto knob = GuardedClockKnob::Make({&first_});
  ASSERT_TRUE(knob.ok()) << knob.error().message;
  const auto checked = knob.value()->IsOurs();
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("another program has locked"));
}

TEST_F(GuardedClockKnobTest, AnIdleGpuDoesNotSayWhetherItIsLocked) {
  clock_.Advance(kSensorDelay);
  auto knob = GuardedClockKnob::Make({&first_});
  ASSERT_TRUE(knob.ok()) << knob.error().message;
  EXPECT_FALSE(knob.value()->IsOurs().value());
  MakeBusy();
  clock_.Advance(kSensorDelay);
  EXPECT_TRUE(knob.value()->IsOurs().value());
}

TEST_F(GuardedClockKnobTest, AClockThatAnotherProgramSetMeanwhileIsNoLongerOurs) {
  MakeBusy();
  clock_.Advance(kSensorDelay);
  auto knob = GuardedClockKnob::Make({&first_});
  ASSERT_TRUE(knob.ok()) << knob.error().message;
  ASSERT_TRUE(knob.value()->Lock(900_MHz).ok());
  ASSERT_TRUE(
      first_.LockClockWithoutJournal(ClockDomain::kGraphics, {.min = 1200_MHz, .max = 1200_MHz})
          .ok());
  clock_.Advance(kSensorDelay);
  EXPECT_TRUE(knob.value()->IsOurs().value());
  knob.value()->Disown();
  const auto checked = knob.value()->IsOurs();
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("locked the graphics clock of gpu:0 to 1200 MHz"));
}

TEST_F(GuardedClockKnobTest, AMissingPermissionIsFoundWithoutAChange) {
  auto knob = GuardedClockKnob::Make({&first_});
  ASSERT_TRUE(knob.ok()) << knob.error().message;
  const Watts before = first_.CurrentPowerLimit().value().requested;
  EXPECT_TRUE(knob.value()->CheckPermission().ok());
  EXPECT_EQ(first_.CurrentPowerLimit().value().requested, before);
  first_.InjectFault({.kind = sim::FaultKind::kNoPermission});
  const Status checked = knob.value()->CheckPermission();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::kPermissionDenied);
}

TEST_F(GuardedClockKnobTest, WithoutGpusThereIsNothingToTurn) {
  const auto knob = GuardedClockKnob::Make({});
  ASSERT_FALSE(knob.ok());
  EXPECT_EQ(knob.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace clock_knob_test
}  // namespace zeus::cli
