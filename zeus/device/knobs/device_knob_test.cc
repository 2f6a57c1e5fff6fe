#include "zeus/device/knobs/device_knob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/file.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/rapl/cpu_discovery.h"
#include "zeus/device/rapl/testing/rapl_tree.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus {

namespace device_knob_test {

using namespace zeus::literals;
using sim::FaultKind;
using ::testing::HasSubstr;

class DeviceKnobTest : public ::testing::Test {
 protected:
  std::unique_ptr<DeviceKnob> PowerLimitKnob() {
    return DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, gpu_).value();
  }
  std::unique_ptr<DeviceKnob> ClockKnob() {
    return DeviceKnob::WithoutJournal(KnobKind::kGraphicsClock, gpu_).value();
  }
  Watts Requested() { return gpu_.CurrentPowerLimit().value().requested; }

  // The clock of a busy GPU.
  Hertz Clock() {
    clock_.Advance(Seconds(10));
    return gpu_.CurrentClock(ClockDomain::kGraphics).value();
  }

  VirtualClock clock_;
  sim::SimulatedGpu gpu_{clock_, sim::testing::Model("V100")};
};

TEST_F(DeviceKnobTest, TheLimitBeforeTheFirstChangeComesBack) {
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(200_W).ok());
  {
    const auto knob = PowerLimitKnob();
    EXPECT_EQ(knob->name(), "power limit of gpu:0");
    EXPECT_EQ(knob->max_power(), 250_W);
    ASSERT_TRUE(knob->Set(150_W).ok());
    ASSERT_TRUE(knob->Set(175_W).ok());
    EXPECT_EQ(Requested(), 175_W);
    EXPECT_TRUE(knob->Restore().ok());
    EXPECT_EQ(Requested(), 200_W);
    ASSERT_TRUE(knob->Set(125_W).ok());
  }
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(DeviceKnobTest, AKnobThatWasNotTurnedChangesNothing) {
  const auto knob = PowerLimitKnob();
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(200_W).ok());
  EXPECT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(DeviceKnobTest, SettingsCoverTheRange) {
  const auto settings = PowerLimitKnob()->Settings(25_W).value();
  EXPECT_EQ(settings.front(), Setting(250_W));
  EXPECT_EQ(settings.back(), Setting(100_W));
  EXPECT_EQ(settings.size(), 7U);
  const auto clocks = ClockKnob()->Settings(Hertz(0)).value();
  const auto supported = gpu_.SupportedClocks(ClockDomain::kGraphics).value();
  EXPECT_EQ(clocks.front(), Setting(supported.back()));
  EXPECT_EQ(clocks.back(), Setting(supported.front()));
  EXPECT_EQ(clocks[1], Setting(supported[supported.size() - 16]));
}

TEST_F(DeviceKnobTest, ALockedClockIsFreeAgainAfterwards) {
  ASSERT_TRUE(gpu_.AttachLoad(sim::testing::Draw(120_W)).ok());
  const Hertz free = Clock();
  const Hertz low = gpu_.SupportedClocks(ClockDomain::kGraphics).value()[20];
  const auto knob = ClockKnob();
  ASSERT_TRUE(knob->Set(low).ok());
  EXPECT_EQ(Clock(), low);
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Clock(), free);
}

TEST_F(DeviceKnobTest, TheMemoryClockIsAKnobOfItsOwn) {
  sim::SimulatedGpu gpu(clock_, sim::testing::Model("A100"));
  const Hertz before = gpu.CurrentClock(ClockDomain::kMemory).value();
  {
    const auto knob = DeviceKnob::WithoutJournal(KnobKind::kMemoryClock, gpu).value();
    EXPECT_EQ(knob->name(), "memory clock of gpu:0");
    const Hertz lowest = gpu.SupportedClocks(ClockDomain::kMemory).value().front();
    ASSERT_TRUE(knob->Set(lowest).ok());
    EXPECT_EQ(gpu.CurrentClock(ClockDomain::kMemory).value(), lowest);
  }
  EXPECT_EQ(gpu.CurrentClock(ClockDomain::kMemory).value(), before);
}

TEST_F(DeviceKnobTest, AGpuThatCannotLockItsClockSaysSo) {
  sim::SimulatedGpu old(clock_, sim::testing::Model("P100"));
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGraphicsClock, old).value();
  const auto settings = knob->Settings(Hertz(0)).value();
  const Status set = knob->Set(settings.back());
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(set.error().message, HasSubstr("graphics clock of gpu:0"));
}

TEST_F(DeviceKnobTest, ARefusalLeavesNothingToRestore) {
  for (const auto& [fault, code] :
       {std::pair{FaultKind::kNoPermission, ErrorCode::kPermissionDenied},
        {FaultKind::kSetterUnsupported, ErrorCode::kNotSupported}}) {
    const auto knob = PowerLimitKnob();
    ASSERT_TRUE(gpu_.InjectFault({.kind = fault}));
    EXPECT_EQ(knob->Set(150_W).error().code, code);
    EXPECT_TRUE(knob->Restore().ok());
    gpu_.ClearFaults();
  }
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(DeviceKnobTest, AStricterLimitFromOutsideIsNoError) {
  ASSERT_TRUE(gpu_.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 120_W}));
  const auto knob = PowerLimitKnob();
  EXPECT_TRUE(knob->Set(150_W).ok());
  EXPECT_EQ(gpu_.CurrentPowerLimit().value().enforced, 120_W);
  EXPECT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(DeviceKnobTest, WhatCannotBeRestoredNowMayBeLater) {
  const auto knob = PowerLimitKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  ASSERT_TRUE(gpu_.InjectFault({.kind = FaultKind::kLost}));
  EXPECT_THAT(knob->Restore().error().message, HasSubstr("restore the power limit of gpu:0"));
  gpu_.ClearFaults();
  EXPECT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(DeviceKnobTest, TheDriverStaysLoadedMeanwhile) {
  ASSERT_TRUE(gpu_.SetPersistence(Persistence::kOff).ok());
  const auto limit = PowerLimitKnob();
  const auto clock = ClockKnob();
  ASSERT_TRUE(limit->Set(150_W).ok());
  ASSERT_TRUE(clock->Set(clock->Settings(Hertz(0)).value()[2]).ok());
  EXPECT_EQ(gpu_.CurrentPersistence().value(), Persistence::kOn);
  ASSERT_TRUE(clock->Restore().ok());
  EXPECT_EQ(gpu_.CurrentPersistence().value(), Persistence::kOn);
  ASSERT_TRUE(limit->Restore().ok());
  EXPECT_EQ(gpu_.CurrentPersistence().value(), Persistence::kOff);
}

TEST_F(DeviceKnobTest, ValuesThatMeanNothingAreRefused) {
  const auto knob = PowerLimitKnob();
  EXPECT_EQ(knob->Set(1380_MHz).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(knob->Set(5000_W).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_FALSE(DeviceKnob::WithoutJournal(KnobKind::kCpuPowerLimit, gpu_).ok());
}

TEST_F(DeviceKnobTest, AForkedChildLeavesTheKnobToItsParent) {
  const auto knob = PowerLimitKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  // The simulated GPU of the child is a copy, which would show a change as well.
  EXPECT_TRUE(zeus::testing::HoldsInAChild([&] {
    return knob->Restore().ok() && Requested() == 150_W &&
           knob->Set(200_W).error().code == ErrorCode::kUnavailable && Requested() == 150_W;
  }));
}

TEST_F(DeviceKnobTest, TheLimitThatWasFoundIsTheCeiling) {
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(200_W).ok());
  const auto knob = PowerLimitKnob();
  EXPECT_EQ(knob->Settings(25_W).value().front(), Setting(200_W));
  const Status raised = knob->Set(225_W);
  EXPECT_EQ(raised.error().code, ErrorCode::kConflict);
  EXPECT_THAT(raised.error().message, HasSubstr("found at 200 W and is not raised to 225 W"));
  EXPECT_EQ(Requested(), 200_W);
  // It stays the ceiling while the knob is turned.
  ASSERT_TRUE(knob->Set(150_W).ok());
  EXPECT_EQ(knob->Settings(25_W).value().front(), Setting(200_W));
  EXPECT_EQ(knob->Set(201_W).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(knob->Set(200_W).ok());
  knob->LiftCeiling();
  EXPECT_TRUE(knob->Set(225_W).ok());
  EXPECT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(DeviceKnobTest, TheCeilingOfTheDeviceIsItsHighestLimit) {
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(200_W).ok());
  const auto knob =
      DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, gpu_, Ceiling::kOfDevice).value();
  EXPECT_EQ(knob->Settings(25_W).value().front(), Setting(250_W));
  EXPECT_TRUE(knob->Set(250_W).ok());
}

TEST_F(DeviceKnobTest, ACapFromOutsideIsWhatWasFound) {
  ASSERT_TRUE(gpu_.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 160_W}));
  const auto knob = PowerLimitKnob();
  EXPECT_EQ(knob->Current().value(), Setting(160_W));
  EXPECT_EQ(knob->Settings(25_W).value().front(), Setting(160_W));
}

TEST_F(DeviceKnobTest, AClockThatIsFoundLockedIsTheCeiling) {
  ASSERT_TRUE(gpu_.AttachLoad(sim::testing::Draw(120_W)).ok());
  const auto clocks = gpu_.SupportedClocks(ClockDomain::kGraphics).value();
  const Hertz locked = clocks[20];
  ASSERT_TRUE(gpu_.LockClockWithoutJournal(ClockDomain::kGraphics, {clocks[0], locked}).ok());
  EXPECT_EQ(Clock(), locked);
  const auto knob = ClockKnob();
  EXPECT_EQ(knob->Settings(Hertz(0)).value().front(), Setting(locked));
  EXPECT_EQ(knob->Set(clocks[21]).error().code, ErrorCode::kConflict);
  const auto free =
      DeviceKnob::WithoutJournal(KnobKind::kGraphicsClock, gpu_, Ceiling::kOfDevice).value();
  EXPECT_EQ(free->Settings(Hertz(0)).value().front(), Setting(clocks.back()));
}

TEST_F(DeviceKnobTest, WhatSomebodyElseSetMeanwhileIsLeftAsItIs) {
  const auto knob = PowerLimitKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(180_W).ok());  // An administrator.
  EXPECT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 180_W);
}

TEST_F(DeviceKnobTest, ACapThatComesMeanwhileIsKeptTo) {
  const auto knob = PowerLimitKnob();
  ASSERT_TRUE(knob->Set(225_W).ok());
  ASSERT_TRUE(gpu_.SetPowerLimitWithoutJournal(180_W).ok());
  EXPECT_EQ(knob->Set(200_W).error().code, ErrorCode::kConflict);
  EXPECT_EQ(Requested(), 180_W);
  ASSERT_TRUE(knob->Set(150_W).ok());
  EXPECT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 180_W);
}

TEST_F(DeviceKnobTest, ItTellsWhetherASettingIsInForce) {
  const auto knob = PowerLimitKnob();
  ASSERT_TRUE(knob->Set(200_W).ok());
  EXPECT_TRUE(knob->CheckInForce(200_W).ok());
  ASSERT_TRUE(gpu_.InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 120_W}));
  EXPECT_THAT(knob->CheckInForce(200_W).error().message, HasSubstr("in force is 120 W"));
  gpu_.ClearFaults();
  ASSERT_TRUE(gpu_.InjectFault({.kind = FaultKind::kDriverReload}));
  clock_.Advance(Seconds(1));
  EXPECT_THAT(knob->CheckInForce(200_W).error().message, HasSubstr("in force is 250 W"));
}

TEST_F(DeviceKnobTest, ALimitThatCannotBePutBackSaysWhatItIs) {
  const auto knob = PowerLimitKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  ASSERT_TRUE(gpu_.InjectFault({.kind = FaultKind::kNoPermission}));
  EXPECT_THAT(knob->Restore().error().message, HasSubstr("stays at 150 W (250 W before"));
  gpu_.ClearFaults();
}

TEST_F(DeviceKnobTest, AFailureToRestoreIsLoggedOnceUntilItIsRestored) {
  const auto count = [](const std::string& text) {
    int lines = 0;
    for (auto at = text.find("stays at"); at != std::string::npos;
         at = text.find("stays at", at + 1))
      ++lines;
    return lines;
  };
  for (int round = 0; round < 2; ++round) {
    auto knob = PowerLimitKnob();
    ASSERT_TRUE(knob->Set(150_W).ok());
    ASSERT_TRUE(gpu_.InjectFault({.kind = FaultKind::kNoPermission}));
    ::testing::internal::CaptureStderr();
    { const KnobGuard guard(*knob); }
    { const KnobGuard guard(*knob); }
    EXPECT_EQ(count(::testing::internal::GetCapturedStderr()), 1);
    gpu_.ClearFaults();
    EXPECT_TRUE(knob->Restore().ok());
  }
}

}  // namespace device_knob_test

namespace cpu_knob_test {

using namespace zeus::literals;

class CpuKnobTest : public ::testing::Test {
 protected:
  CpuKnobTest() {
    tree_.AddCpu(0, 0);
    tree_.AddZone("intel-rapl:0", "package-0");
    tree_.AddConstraints("intel-rapl:0", 120'000'000, 150'000'000);
    node_ = DiscoverCpus(tree_.surroundings()).value();
  }

  std::uint64_t Microwatts() {
    return ReadUnsigned(tree_.sysfs() / "class/powercap/intel-rapl:0/constraint_0_power_limit_uw")
        .value();
  }

  rapl::testing::RaplTree tree_;
  Node node_;
};

TEST_F(CpuKnobTest, TheLongTermLimitIsSetAndPutBack) {
  ASSERT_EQ(node_.cpus.size(), 1U);
  const auto knob = DeviceKnob::WithoutJournal(*node_.cpus.front()).value();
  EXPECT_EQ(knob->kind(), KnobKind::kCpuPowerLimit);
  EXPECT_EQ(knob->name(), "power limit of cpu:0");
  EXPECT_EQ(knob->max_power(), 150_W);
  ASSERT_TRUE(knob->Set(80_W).ok());
  EXPECT_EQ(Microwatts(), 80'000'000U);
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Microwatts(), 120'000'000U);
}

TEST_F(CpuKnobTest, LimitsThatOnlyStallAreNotTried) {
  const auto knob = DeviceKnob::WithoutJournal(*node_.cpus.front()).value();
  const auto settings = knob->Settings(25_W).value();
  EXPECT_EQ(settings.front(), Setting(120_W));  // As found.
  EXPECT_EQ(settings.back(), Setting(45_W));
}

TEST_F(CpuKnobTest, TheLimitThatWasFoundIsRaisedOnlyWithPermission) {
  const auto knob = DeviceKnob::WithoutJournal(*node_.cpus.front()).value();
  EXPECT_EQ(knob->Set(130_W).error().code, ErrorCode::kConflict);
  EXPECT_EQ(Microwatts(), 120'000'000U);
  const auto free = DeviceKnob::WithoutJournal(*node_.cpus.front(), Ceiling::kOfDevice).value();
  EXPECT_EQ(free->Settings(25_W).value().front(), Setting(150_W));
  ASSERT_TRUE(free->Set(130_W).ok());
  EXPECT_EQ(Microwatts(), 130'000'000U);
}

}  // namespace cpu_knob_test

}  // namespace zeus
