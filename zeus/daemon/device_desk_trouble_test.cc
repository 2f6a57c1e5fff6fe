#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/detached_call.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/daemon/device_desk.h"
#include "zeus/daemon/knob_worker.h"
#include "zeus/daemon/testing/desk_world.h"

namespace zeus::daemon {
namespace device_desk_trouble_test {

using namespace zeus::literals;
using sim::FaultKind;
using ::testing::Contains;
using testing::DeskWorld;
using testing::Exactly;
using testing::Gate;
using ::testing::HasSubstr;
using testing::SteppedActuator;
using wire::LeaseKnob;

class DeviceDeskTroubleTest : public ::testing::Test, protected DeskWorld {
 protected:
  // Asks `before` ahead of each call to the first GPU.
  void WrapFirstGpu(SteppedActuator::Before before) {
    options_.wrap =
        [before](std::unique_ptr<KnobActuator> actuator) -> std::unique_ptr<KnobActuator> {
      if (actuator->device().name != "gpu:0") return actuator;
      return std::make_unique<SteppedActuator>(std::move(actuator), before);
    };
  }
  DeviceDesk::DeviceState State() const { return desk_->Devices().front(); }
};

// --- other programs ---

TEST_F(DeviceDeskTroubleTest, AForeignSettingIsRespected) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
  KnobReport report = Look(Key());
  EXPECT_TRUE(report.foreign);
  EXPECT_EQ(std::get<Setting>(*report.enforced), Setting(200_W));
  report = Settle(Key(), {Exactly("a", 125_W)});
  EXPECT_TRUE(report.foreign);
  EXPECT_EQ(Requested(), 200_W);
  EXPECT_EQ(State().foreign_changes, 1U);
  report = Settle(Key(), {});
  EXPECT_TRUE(report.released);
  EXPECT_EQ(Requested(), 200_W) << "it is the baseline now";
  EXPECT_EQ(JournalEntries(), 0U);
  EXPECT_THAT(Events(), Contains("knob changed by others"));
  EXPECT_THAT(Events(), Contains("knob left as others set it"));
}

TEST_F(DeviceDeskTroubleTest, AForeignSettingIsNoticedByItself) {
  options_.check_period = Seconds(0.01);
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
  clock_.Advance(Seconds(1));
  const SystemClock real;
  const TimePoint deadline = real.Now() + kTimeout;
  while (!desk_->Latest(Key())->foreign && real.Now() < deadline) clock_.Advance(Seconds(1));
  EXPECT_TRUE(desk_->Latest(Key())->foreign);
}

TEST_F(DeviceDeskTroubleTest, AForeignSettingIsOverwrittenThreeTimesAndThenRespected) {
  options_.foreign = ForeignPolicy::kReassert;
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  for (int i = 0; i < KnobWorker::kMostReasserts; ++i) {
    ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
    EXPECT_FALSE(Look(Key()).foreign);
    EXPECT_EQ(Requested(), 150_W);
    ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
    EXPECT_TRUE(Look(Key()).foreign) << "at most once in ten seconds";
    EXPECT_EQ(Requested(), 200_W);
    clock_.Advance(KnobWorker::kBetweenReasserts);
  }
  EXPECT_TRUE(Look(Key()).foreign);
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(DeviceDeskTroubleTest, AForeignSettingAboveTheCapOfASiteIsLoweredAgainAndAgain) {
  Open();
  daemon::Claim cap = Exactly("budget", 150_W);
  cap.lease_class = wire::LeaseClass::kSite;
  cap.demand = wire::AtMost{Setting(150_W)};
  Settle(Key(), {cap});
  EXPECT_EQ(Requested(), 150_W);
  for (int i = 0; i < 2 * KnobWorker::kMostReasserts; ++i) {
    ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
    EXPECT_FALSE(Look(Key()).foreign);
    EXPECT_EQ(Requested(), 150_W);
    clock_.Advance(KnobWorker::kBetweenReasserts);
  }
  // Less than the cap is somebody's wish and takes nobody's watts.
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(120_W).ok());
  EXPECT_TRUE(Look(Key()).foreign);
  EXPECT_EQ(Requested(), 120_W);
}

TEST_F(DeviceDeskTroubleTest, AStricterCapFromOutsideIsNoForeignSetting) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(gpu().InjectFault({.kind = FaultKind::kOutOfBandCap, .cap = 120_W}));
  const KnobReport report = Look(Key());
  EXPECT_FALSE(report.foreign);
  EXPECT_EQ(std::get<Setting>(*report.enforced), Setting(120_W));
}

TEST_F(DeviceDeskTroubleTest, AReloadOfTheDriverMakesItsDefaultTheBaseline) {
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
  ASSERT_TRUE(gpu().AttachLoad(sim::testing::Draw(120_W)).ok());
  const Hertz clock = gpu().SupportedClocks(ClockDomain::kGraphics).value()[20];
  Open();
  clock_.Advance(Seconds(100));
  Settle(Key(), {Exactly("a", 150_W)});
  Settle(Key(LeaseKnob::kGraphicsClock), {Exactly("a", clock)});
  ASSERT_TRUE(gpu().InjectFault({.kind = FaultKind::kDriverReload}));
  EXPECT_EQ(Requested(), 250_W);
  const KnobReport report = Look(Key());
  EXPECT_FALSE(report.foreign);
  EXPECT_EQ(std::get<Setting>(*report.baseline), Setting(250_W));
  EXPECT_EQ(Requested(), 150_W);
  Look(Key(LeaseKnob::kGraphicsClock));
  clock_.Advance(Seconds(10));
  EXPECT_EQ(gpu().CurrentClock(ClockDomain::kGraphics).value(), clock);
  Settle(Key(), {});
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_THAT(Events(), Contains("driver reloaded"));
}

// --- devices that are lost, refuse or hang ---

TEST_F(DeviceDeskTroubleTest, ALostGpuIsSuspendedAndServedWhenItReturns) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(gpu().InjectFault({.kind = FaultKind::kLost}));
  KnobReport report = Look(Key());
  EXPECT_TRUE(report.suspended);
  EXPECT_TRUE(report.trouble);
  EXPECT_TRUE(State().lost);
  EXPECT_EQ(desk_->Ready(Key().device).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(desk_->Ready(Key(LeaseKnob::kGpuPowerLimit, 1).device).ok());
  report = Settle(Key(), {Exactly("a", 125_W)});
  EXPECT_TRUE(report.suspended);
  gpu().ClearFaults();
  report = Look(Key());
  EXPECT_FALSE(report.suspended);
  EXPECT_EQ(Requested(), 125_W);
  EXPECT_TRUE(desk_->Ready(Key().device).ok());
}

TEST_F(DeviceDeskTroubleTest, WhatCannotBePutBackIsTriedUntilItIs) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(gpu().InjectFault({.kind = FaultKind::kLost}));
  const KnobReport report = Settle(Key(), {});
  EXPECT_FALSE(report.released);
  EXPECT_TRUE(report.trouble);
  EXPECT_EQ(State().restore_pending, 1U);
  EXPECT_EQ(JournalEntries(), 1U);
  gpu().ClearFaults();
  clock_.Advance(options_.retry_period);
  desk_->Wake(Key(LeaseKnob::kMemoryClock));  // Any sign of life.
  EXPECT_TRUE(desk_->WaitUntilReleased(kTimeout));
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_EQ(State().restore_pending, 0U);
}

TEST_F(DeviceDeskTroubleTest, AGpuThatIsLostAtTheStartIsServedWhenItReturns) {
  ASSERT_TRUE(gpu().InjectFault({.kind = FaultKind::kLost}));
  claims_.Set(Key(), {Exactly("a", 150_W)});
  Open();
  EXPECT_FALSE(desk_->Find(Key()));
  EXPECT_FALSE(desk_->Ready(Key().device).ok());
  gpu().ClearFaults();
  clock_.Advance(options_.retry_period);
  desk_->Refresh(Key().device);
  EXPECT_TRUE(desk_->WaitUntilSettled(Key(), kTimeout));
  EXPECT_EQ(Requested(), 150_W);
}

TEST_F(DeviceDeskTroubleTest, ARefusalLeavesNothingBehind) {
  Open();
  ASSERT_TRUE(gpu().InjectFault({.kind = FaultKind::kNoPermission}));
  KnobReport report = Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(report.trouble);
  EXPECT_EQ(report.trouble->code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(JournalEntries(), 0U);
  report = Settle(Key(), {});
  EXPECT_TRUE(report.released);
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(DeviceDeskTroubleTest, AnUnusableJournalKeepsTheKnobFromBeingTurned) {
  Open();
  std::filesystem::rename(folder_.path(), folder_.path().string() + ".away");
  EXPECT_THAT(desk_->Ready(Key().device).error().message, HasSubstr("journal of knobs"));
  const KnobReport report = Settle(Key(), {Exactly("a", 150_W)});
  EXPECT_TRUE(report.trouble);
  EXPECT_EQ(Requested(), 250_W);
  std::filesystem::rename(folder_.path().string() + ".away", folder_.path());
  EXPECT_FALSE(Look(Key()).trouble);
  EXPECT_EQ(Requested(), 150_W);
}

TEST_F(DeviceDeskTroubleTest, AnEntryThatCannotBeRemovedIsRemovedLater) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  std::filesystem::rename(folder_.path(), folder_.path().string() + ".away");
  KnobReport report = Settle(Key(), {});
  EXPECT_TRUE(report.trouble);
  EXPECT_FALSE(report.released);
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_EQ(State().restore_pending, 1U);
  std::filesystem::rename(folder_.path().string() + ".away", folder_.path());
  EXPECT_EQ(JournalEntries(), 1U);
  report = Look(Key());
  EXPECT_TRUE(report.released);
  EXPECT_EQ(JournalEntries(), 0U);
  EXPECT_EQ(State().restore_pending, 0U);
}

TEST_F(DeviceDeskTroubleTest, ADeviceThatHangsIsStuckAndDisturbsNoOther) {
  Gate gate;
  WrapFirstGpu([&gate](const char*, const KnobDevice&) {
    gate.Pass();
    return Ok();
  });
  options_.longest_call = Seconds(1);
  Open();
  gate.Close();
  Claim(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(gate.WaitUntilReached());
  EXPECT_TRUE(desk_->Ready(Key().device).ok());
  clock_.Advance(Seconds(2));
  const Status ready = desk_->Ready(Key().device);
  EXPECT_EQ(ready.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(ready.error().message, HasSubstr("is stuck"));
  EXPECT_TRUE(State().stuck);
  EXPECT_THAT(claims_.WaitForTrouble(Key()), HasSubstr("is stuck")) << "leases are told, too";
  const auto other = Key(LeaseKnob::kGpuPowerLimit, 1);
  EXPECT_FALSE(Settle(other, {Exactly("b", 175_W)}).trouble);
  EXPECT_EQ(Requested(1), 175_W);
  gate.Open();
  EXPECT_TRUE(desk_->WaitUntilSettled(Key(), kTimeout));
  EXPECT_EQ(Requested(0), 150_W);
  EXPECT_TRUE(desk_->Ready(Key().device).ok());
}

TEST_F(DeviceDeskTroubleTest, ADeviceThatHangsAtTheStartKeepsNoOtherFromStarting) {
  Gate gate;
  WrapFirstGpu([&gate](const char*, const KnobDevice&) {
    gate.Pass();
    return Ok();
  });
  options_.longest_call = Seconds(0.1);
  gate.Close();
  Open();
  const auto other = Key(LeaseKnob::kGpuPowerLimit, 1);
  EXPECT_FALSE(Settle(other, {Exactly("b", 175_W)}).trouble);
  EXPECT_FALSE(desk_->Find(Key()));
  clock_.Advance(Seconds(1));
  EXPECT_THAT(desk_->Ready(Key().device).error().message, HasSubstr("is stuck"));
  claims_.Set(Key(), {Exactly("a", 150_W)});
  gate.Open();
  EXPECT_TRUE(desk_->WaitUntilSettled(Key(), kTimeout));
  EXPECT_EQ(Requested(), 150_W);
}

TEST(DeviceDeskEndTest, ADeskWithADeviceThatHangsEndsAllTheSame) {
  EXPECT_TRUE(zeus::testing::HoldsInAChild([] {
    Gate gate;
    DeskWorld world;
    world.options_.longest_call = Seconds(0.05);
    world.options_.wrap = [&gate](std::unique_ptr<KnobActuator> actuator) {
      return std::make_unique<SteppedActuator>(std::move(actuator),
                                               [&gate](const char*, const KnobDevice&) {
                                                 gate.Pass();
                                                 return Ok();
                                               });
    };
    world.Open();
    gate.Close();
    world.Claim(world.Key(), {Exactly("a", 150_W)});
    if (!gate.WaitUntilReached()) return false;
    world.Close();
    gate.Open();  // The thread that was left behind goes no further than out of its call.
    ::_exit(AbandonedCalls() == 1 ? 0 : 1);
  }));
}

TEST_F(DeviceDeskTroubleTest, AHangInEachCallKeepsNoOtherDeviceFromItsJournal) {
  for (const char* where : {"read", "apply", "applied", "put back"}) {
    SCOPED_TRACE(where);
    Gate gate;
    WrapFirstGpu([&gate, where](const char* call, const KnobDevice&) {
      if (std::string_view(call) == where) gate.Pass();
      return Ok();
    });
    Open();
    const bool at_the_end = std::string_view(where) == "put back";
    const auto clocks = gpu().SupportedClocks(ClockDomain::kGraphics).value();
    const auto first = Key(LeaseKnob::kGraphicsClock);
    if (at_the_end) Settle(first, {Exactly("a", clocks[20])});
    gate.Close();
    Claim(first, at_the_end ? std::vector<daemon::Claim>()
                            : std::vector<daemon::Claim>{Exactly("a", clocks[20])});
    ASSERT_TRUE(gate.WaitUntilReached());
    const auto other = Key(LeaseKnob::kGpuPowerLimit, 1);
    EXPECT_FALSE(Settle(other, {Exactly("b", 175_W)}).trouble);
    EXPECT_TRUE(Settle(other, {}).released);
    gate.Open();
    Settle(first, {});
    Close();
    EXPECT_EQ(JournalEntries(), 0U);
  }
}

// Each step of a device fails once: whatever was claimed then holds, and what was found comes back.
TEST_F(DeviceDeskTroubleTest, AFailureAtEachStepIsMadeGood) {
  std::atomic<int> steps{0};
  std::atomic<int> failing{0};
  WrapFirstGpu([&](const char* call, const KnobDevice& device) -> Status {
    if (++steps != failing) return Ok();
    return Error{ErrorCode::kUnavailable, device.name + " fails to " + call};
  });
  const auto run = [this] {
    Open();
    Settle(Key(), {Exactly("a", 150_W)});
    Settle(Key(), {Exactly("a", 175_W)});
    Look(Key());
    EXPECT_EQ(Requested(), 175_W);
    Claim(Key(), {});
    EXPECT_TRUE(desk_->WaitUntilSettled(Key(), kTimeout));
    Look(Key());
    EXPECT_TRUE(desk_->WaitUntilReleased(kTimeout));
    EXPECT_EQ(Requested(), 250_W);
    EXPECT_EQ(JournalEntries(), 0U);
    Close();
  };
  run();
  const int all = steps;
  ASSERT_GT(all, 5);
  // The knobs themselves are looked for in the first steps: a failure there is that of a lost GPU.
  for (int step = 5; step <= all; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    steps = 0;
    failing = step;
    run();
  }
}

// --- maintenance ---

TEST_F(DeviceDeskTroubleTest, MaintenancePutsTheKnobsBackAndWritesNothing) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(desk_->BeginMaintenance(Key().device, Seconds(600)).ok());
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_EQ(JournalEntries(), 0U);
  EXPECT_TRUE(desk_->Latest(Key())->suspended);
  EXPECT_FALSE(desk_->Latest(Key())->released);
  EXPECT_THAT(desk_->Ready(Key().device).error().message, HasSubstr("maintenance"));
  EXPECT_EQ(State().maintenance_left, Seconds(600));
  Settle(Key(), {Exactly("a", 125_W)});
  EXPECT_EQ(Requested(), 250_W);
  ASSERT_TRUE(desk_->EndMaintenance(Key().device).ok());
  EXPECT_FALSE(Look(Key()).suspended);
  EXPECT_EQ(Requested(), 125_W);
}

TEST_F(DeviceDeskTroubleTest, MaintenanceEndsByItself) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(desk_->BeginMaintenance(Key().device, Seconds(60)).ok());
  clock_.Advance(Seconds(60));
  EXPECT_FALSE(Look(Key()).suspended);
  EXPECT_EQ(Requested(), 150_W);
  EXPECT_EQ(desk_->BeginMaintenance("GPU-unknown", Seconds(1)).error().code, ErrorCode::kNotFound);
}

}  // namespace device_desk_trouble_test
}  // namespace zeus::daemon
