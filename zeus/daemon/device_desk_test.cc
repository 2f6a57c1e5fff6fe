#include "zeus/daemon/device_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string_view>

#include "zeus/daemon/testing/desk_world.h"
#include "zeus/device/rapl/cpu_discovery.h"
#include "zeus/device/rapl/testing/rapl_tree.h"

namespace zeus::daemon {
namespace device_desk_test {

using namespace zeus::literals;
using testing::AtMost;
using testing::ClaimOf;
using ::testing::Contains;
using testing::DeskWorld;
using ::testing::ElementsAre;
using testing::Exactly;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using wire::KnobValue;
using wire::LeaseKnob;

class DeviceDeskTest : public ::testing::Test, protected DeskWorld {};

TEST_F(DeviceDeskTest, AClaimTurnsTheKnobAndItsEndPutsItBack) {
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(225_W).ok());
  Open();
  const KnobReport held = Settle(Key(), {Exactly("a", 150_W)});
  EXPECT_EQ(Requested(), 150_W);
  EXPECT_EQ(held.version, 1U);
  EXPECT_EQ(std::get<Setting>(*held.baseline), Setting(225_W));
  EXPECT_EQ(std::get<Setting>(*held.enforced), Setting(150_W));
  EXPECT_EQ(held.resolution.bound_by, "a");
  EXPECT_FALSE(held.trouble);
  EXPECT_FALSE(held.released);
  EXPECT_EQ(JournalEntries(), 1U);

  const KnobReport back = Settle(Key(), {});
  EXPECT_TRUE(back.released);
  EXPECT_EQ(Requested(), 225_W);
  EXPECT_EQ(JournalEntries(), 0U);
  EXPECT_THAT(Events(), ElementsAre("knob set", "knob put back"));
  EXPECT_EQ(claims_.reports(Key()).back().released, true);
}

TEST_F(DeviceDeskTest, TheJournalKnowsEachSettingBeforeTheDevice) {
  std::vector<std::string> wrong;
  options_.wrap = [&](std::unique_ptr<KnobActuator> actuator) {
    return std::make_unique<testing::SteppedActuator>(
        std::move(actuator), [&](const char* call, const KnobDevice& device) -> Status {
          if (std::string_view(call) != "apply") return Ok();
          if (!journal_.Knows(KnobKind::kGpuPowerLimit, device)) wrong.emplace_back(device.name);
          return Ok();
        });
  };
  Open();
  for (const Watts watts : {150_W, 175_W, 125_W}) Settle(Key(), {Exactly("a", watts)});
  EXPECT_EQ(Requested(), 125_W);
  EXPECT_THAT(wrong, SizeIs(0));
}

TEST_F(DeviceDeskTest, TheBaselineHoldsUnderACapThatIsHigher) {
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
  Open();
  const KnobReport report = Settle(Key(), {AtMost("a", 225_W)});
  EXPECT_EQ(Requested(), 200_W);
  EXPECT_FALSE(report.resolution.effective);
  EXPECT_TRUE(journal_.Knows(KnobKind::kGpuPowerLimit,
                             MakeActuator(KnobKind::kGpuPowerLimit, gpu()).value()->device()));
  Settle(Key(), {AtMost("a", 225_W), AtMost("b", 150_W)});
  EXPECT_EQ(Requested(), 150_W);
  Settle(Key(), {AtMost("a", 225_W)});
  EXPECT_EQ(Requested(), 200_W);
  Settle(Key(), {});
  EXPECT_EQ(Requested(), 200_W);
  EXPECT_EQ(JournalEntries(), 0U);
}

TEST_F(DeviceDeskTest, ADeviceDoesNotDisturbAnother) {
  Open();
  Settle(Key(LeaseKnob::kGpuPowerLimit, 0), {Exactly("a", 150_W)});
  Settle(Key(LeaseKnob::kGpuPowerLimit, 1), {Exactly("b", 175_W)});
  EXPECT_EQ(Requested(0), 150_W);
  EXPECT_EQ(Requested(1), 175_W);
  Settle(Key(LeaseKnob::kGpuPowerLimit, 0), {});
  EXPECT_EQ(Requested(0), 250_W);
  EXPECT_EQ(Requested(1), 175_W);
}

TEST_F(DeviceDeskTest, ClocksAreLockedToAValueOrToARange) {
  ASSERT_TRUE(gpu().AttachLoad(sim::testing::Draw(120_W)).ok());
  const auto clock = [this] {
    clock_.Advance(Seconds(10));
    return gpu().CurrentClock(ClockDomain::kGraphics).value();
  };
  const Hertz free = clock();
  const auto clocks = gpu().SupportedClocks(ClockDomain::kGraphics).value();
  Open();
  Settle(Key(LeaseKnob::kGraphicsClock), {Exactly("a", clocks[20])});
  EXPECT_EQ(clock(), clocks[20]);
  const KnobReport report =
      Settle(Key(LeaseKnob::kGraphicsClock), {ClaimOf("a", wire::InRange{clocks[10], clocks[30]})});
  EXPECT_FALSE(report.trouble);
  ASSERT_TRUE(std::holds_alternative<ClockRange>(*report.resolution.effective));
  EXPECT_EQ(clock(), clocks[30]);
  Settle(Key(LeaseKnob::kGraphicsClock), {});
  EXPECT_EQ(clock(), free);
  EXPECT_EQ(JournalEntries(), 0U);
}

TEST_F(DeviceDeskTest, ACpuIsADeviceToo) {
  rapl::testing::RaplTree tree;
  tree.AddCpu(0, 0);
  tree.AddZone("intel-rapl:0", "package-0");
  tree.AddConstraints("intel-rapl:0", 180'000'000, 200'000'000);
  auto found = DiscoverCpus(tree.surroundings()).value();
  ASSERT_THAT(found.cpus, SizeIs(1));
  node_.cpus = std::move(found.cpus);
  const wire::KnobKey key{.device = "cpu:0", .knob = LeaseKnob::kCpuPowerLimit};
  Open();
  EXPECT_FALSE(Settle(key, {Exactly("a", 120_W)}).trouble);
  EXPECT_EQ(node_.cpus[0]->CurrentPowerLimit().value().requested, 120_W);
  EXPECT_TRUE(Settle(key, {}).released);
  EXPECT_EQ(node_.cpus[0]->CurrentPowerLimit().value().requested, 180_W);
  Close();
  node_.cpus.clear();
}

TEST_F(DeviceDeskTest, PersistenceIsKeptWhileAnyKnobIsTurned) {
  ASSERT_TRUE(gpu().SetPersistence(Persistence::kOff).ok());
  const auto mode = [this] { return gpu().CurrentPersistence().value(); };
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  EXPECT_EQ(mode(), Persistence::kOn);
  EXPECT_EQ(JournalEntries(), 2U);
  const auto clock = gpu().SupportedClocks(ClockDomain::kGraphics).value()[20];
  Settle(Key(LeaseKnob::kGraphicsClock), {Exactly("b", clock)});
  Settle(Key(), {});
  EXPECT_EQ(mode(), Persistence::kOn) << "the lock of the clock needs it";
  Settle(Key(LeaseKnob::kPersistence), {ClaimOf("c", wire::SwitchedOn{})});
  Settle(Key(LeaseKnob::kGraphicsClock), {});
  EXPECT_EQ(mode(), Persistence::kOn) << "the lease asks for it";
  const KnobReport back = Settle(Key(LeaseKnob::kPersistence), {});
  EXPECT_TRUE(back.released);
  EXPECT_EQ(mode(), Persistence::kOff);
  EXPECT_EQ(JournalEntries(), 0U);
}

TEST_F(DeviceDeskTest, PersistenceThatWasOnStaysOn) {
  ASSERT_TRUE(gpu().SetPersistence(Persistence::kOn).ok());
  Open();
  const KnobReport report =
      Settle(Key(LeaseKnob::kPersistence), {ClaimOf("c", wire::SwitchedOn{})});
  EXPECT_EQ(std::get<Persistence>(*report.enforced), Persistence::kOn);
  EXPECT_EQ(JournalEntries(), 0U);
  Settle(Key(LeaseKnob::kPersistence), {});
  EXPECT_EQ(gpu().CurrentPersistence().value(), Persistence::kOn);
}

TEST_F(DeviceDeskTest, ALeaseDoesNotRaiseTheLimitThatWasFound) {
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
  Open();
  const KnobReport report = Settle(Key(), {Exactly("a", 240_W)});
  EXPECT_EQ(Requested(), 200_W);
  ASSERT_TRUE(report.trouble);
  EXPECT_EQ(report.trouble->code, ErrorCode::kConflict);
  EXPECT_THAT(report.trouble->message, HasSubstr("found at 200 W and is not raised to 240 W"));
  Settle(Key(), {});
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(DeviceDeskTest, TheMachinesPolicyMayAllowToRaise) {
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
  options_.may_raise = true;
  Open();
  EXPECT_FALSE(Settle(Key(), {Exactly("a", 240_W)}).trouble);
  EXPECT_EQ(Requested(), 240_W);
  Settle(Key(), {});
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(DeviceDeskTest, BoundsHoldForEverybodyAndMayChange) {
  options_.bounds[LeaseKnob::kGpuPowerLimit] = {.min_watts = 150_W, .max_share = 0.8};
  Open();
  const auto facts = desk_->Find(Key());
  ASSERT_TRUE(facts && facts->choices);
  EXPECT_EQ(facts->choices->lowest, Setting(150_W));
  EXPECT_EQ(facts->choices->highest, Setting(200_W));
  Settle(Key(), {Exactly("a", 100_W)});
  EXPECT_EQ(Requested(), 150_W);
  desk_->SetBounds({});
  Look(Key());
  EXPECT_EQ(Requested(), 100_W);
}

TEST_F(DeviceDeskTest, WhatAKilledDaemonLeftIsRepairedBeforeTheFirstClaim) {
  const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, gpu()).value();
  {
    KnobJournal dead(clock_, folder_.path());
    ASSERT_TRUE(dead.Take(*actuator, Setting(125_W)).ok());
    ASSERT_TRUE(actuator->Apply(125_W).ok());
  }
  claims_.Set(Key(), {Exactly("a", 150_W)});
  Open();
  EXPECT_TRUE(desk_->WaitUntilSettled(Key(), kTimeout));
  EXPECT_EQ(Requested(), 150_W);
  EXPECT_EQ(std::get<Setting>(*desk_->Latest(Key())->baseline), Setting(250_W));
  Settle(Key(), {});
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(DeviceDeskTest, WhatAKilledDaemonHeldForALeaseThatLivesOnIsNotWrittenAgain) {
  const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, gpu()).value();
  {
    KnobJournal dead(clock_, folder_.path());
    ASSERT_TRUE(dead.Take(*actuator, Setting(125_W)).ok());
    ASSERT_TRUE(actuator->Apply(125_W).ok());
  }
  std::atomic<int> writes = 0;
  options_.wrap = [&writes](std::unique_ptr<KnobActuator> wrapped) {
    return std::make_unique<testing::SteppedActuator>(
        std::move(wrapped), [&writes](const char* call, const KnobDevice& device) {
          if (call != std::string_view("read") && device.name == "gpu:0") ++writes;
          return Ok();
        });
  };
  claims_.Set(Key(), {Exactly("a", 125_W)});
  Open();
  EXPECT_TRUE(desk_->WaitUntilSettled(Key(), kTimeout));
  const int persistence = 2;  // Switched on for the knob: before and after.
  EXPECT_LE(writes, persistence);
  EXPECT_THAT(Events(), Not(Contains("knob put back")));
  EXPECT_EQ(std::get<Setting>(*desk_->Latest(Key())->baseline), Setting(250_W));
  EXPECT_EQ(std::get<Setting>(*desk_->Latest(Key())->enforced), Setting(125_W));
  KnobJournal other(clock_, folder_.path());
  EXPECT_FALSE(other.Take(*actuator, Setting(150_W)).ok()) << "it is held";
  Settle(Key(), {});
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_EQ(JournalEntries(), 0U);
}

TEST_F(DeviceDeskTest, WhatAnotherProgramSetAfterADaemonWasKilledIsTheBaseline) {
  const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, gpu()).value();
  {
    KnobJournal dead(clock_, folder_.path());
    ASSERT_TRUE(dead.Take(*actuator, Setting(125_W)).ok());
    ASSERT_TRUE(actuator->Apply(200_W).ok());
  }
  claims_.Set(Key(), {Exactly("a", 150_W)});
  Open();
  EXPECT_TRUE(desk_->WaitUntilSettled(Key(), kTimeout));
  EXPECT_EQ(Requested(), 150_W);
  Settle(Key(), {});
  EXPECT_EQ(Requested(), 200_W);
}

TEST_F(DeviceDeskTest, AnEndWithoutAReleaseLeavesAJournalThatRepairs) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  Settle(Key(LeaseKnob::kGpuPowerLimit, 1), {Exactly("a", 125_W)});
  Close();
  EXPECT_EQ(Requested(), 150_W);
  EXPECT_EQ(JournalEntries(), 2U);
}

TEST_F(DeviceDeskTest, AKnobOfALivingProcessIsNotTouched) {
  KnobJournal other(clock_, folder_.path());
  const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, gpu()).value();
  ASSERT_TRUE(other.Take(*actuator, Setting(125_W)).ok());
  ASSERT_TRUE(actuator->Apply(125_W).ok());
  Open();
  const KnobReport report = Settle(Key(), {Exactly("a", 150_W)});
  ASSERT_TRUE(report.trouble);
  EXPECT_THAT(report.trouble->message, HasSubstr("held by"));
  EXPECT_EQ(Requested(), 125_W);
  ASSERT_TRUE(actuator->Apply(250_W).ok());
  ASSERT_TRUE(other.Release(*actuator).ok());
  EXPECT_FALSE(Look(Key()).trouble);
  EXPECT_EQ(Requested(), 150_W);
}

TEST_F(DeviceDeskTest, TheReleaseOfAllKnobsCanBeWaitedFor) {
  Open();
  Settle(Key(), {Exactly("a", 150_W)});
  EXPECT_FALSE(desk_->WaitUntilReleased(Seconds(0)));
  Claim(Key(), {});
  EXPECT_TRUE(desk_->WaitUntilReleased(kTimeout));
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(DeviceDeskTest, AllKnobsOfAllDevicesAreListed) {
  ASSERT_TRUE(gpu().SetPersistence(Persistence::kOff).ok());
  Open();
  EXPECT_THAT(desk_->Knobs(), SizeIs(8));
  EXPECT_FALSE(desk_->Find({.device = "GPU-unknown"}));
  EXPECT_EQ(desk_->Ready("GPU-unknown").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(desk_->Ready(Key().device).ok());
  EXPECT_FALSE(desk_->Find(Key(LeaseKnob::kPersistence))->choices);
  EXPECT_EQ(desk_->Find(Key())->default_limit, 250_W);
  EXPECT_EQ(desk_->Find(Key(LeaseKnob::kPersistence))->mode, Persistence::kOff);
}

}  // namespace device_desk_test
}  // namespace zeus::daemon
