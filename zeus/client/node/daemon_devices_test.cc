#include "zeus/client/node/daemon_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/client/node/testing/fake_daemon.h"
#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/guarded_knob.h"
#include "zeus/device/knobs/knob_group.h"

namespace zeus::client {
namespace daemon_devices_test {

using namespace zeus::literals;
using ::testing::HasSubstr;
using zeus::testing::FakeDaemon;

class DaemonDevicesTest : public ::testing::Test {
 protected:
  std::unique_ptr<NodeDaemonClient> Client() {
    return std::make_unique<NodeDaemonClient>(daemon_.transport(), clock_);
  }
  void SetUp() override {
    connection_ = std::make_shared<DaemonConnection>(Client(), clock_);
    const NodeView view = ParseNodeView(daemon_.node).value();
    for (const NodeGpu& gpu : view.gpus)
      gpus_.push_back(std::make_unique<DaemonGpu>(connection_, gpu, gpu.name));
  }
  Setting LeasedLimit() const {
    return std::get<wire::Exactly>(daemon_.leases.begin()->second.knobs.at(0).request.demand).value;
  }

  VirtualClock clock_;
  FakeDaemon daemon_;
  std::shared_ptr<DaemonConnection> connection_;
  std::vector<std::unique_ptr<DaemonGpu>> gpus_;
};

TEST_F(DaemonDevicesTest, AGuardedKnobIsALeaseAndLeavesNoJournal) {
  const zeus::testing::TemporaryDirectory journal;
  const zeus::testing::ScopedVariable folder("ZEUS_KNOB_DIR", journal.path().string());
  const auto knob = GuardedKnob::Of(KnobKind::kGpuPowerLimit, *gpus_[0]);
  ASSERT_TRUE(knob.ok()) << knob.error().message;
  EXPECT_TRUE(daemon_.leases.empty());

  ASSERT_TRUE(knob.value()->Set(200_W).ok());
  ASSERT_EQ(daemon_.leases.size(), 1U);
  EXPECT_EQ(LeasedLimit(), Setting(200_W));
  ASSERT_TRUE(knob.value()->Set(180_W).ok());
  ASSERT_EQ(daemon_.leases.size(), 1U);
  EXPECT_EQ(LeasedLimit(), Setting(180_W));
  EXPECT_EQ(gpus_[0]->CurrentPowerLimit().value().requested, 180_W);
  EXPECT_TRUE(std::filesystem::is_empty(journal.path()));

  ASSERT_TRUE(knob.value()->Restore().ok());
  EXPECT_TRUE(daemon_.leases.empty());
}

TEST_F(DaemonDevicesTest, AKnobIsGivenBackWithItsObject) {
  {
    const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, *gpus_[0]).value();
    ASSERT_TRUE(knob->Set(200_W).ok());
    ASSERT_EQ(daemon_.leases.size(), 1U);
  }
  EXPECT_TRUE(daemon_.leases.empty());
}

TEST_F(DaemonDevicesTest, ACapOfAHigherClassShowsWhenTheKnobIsChecked) {
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, *gpus_[0]).value();
  ASSERT_TRUE(knob->Set(200_W).ok());
  EXPECT_TRUE(knob->CheckInForce(200_W).ok());

  daemon_.cap = 180_W;

  const Status in_force = knob->CheckInForce(200_W);
  ASSERT_FALSE(in_force.ok());
  EXPECT_EQ(in_force.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(in_force.error().message, HasSubstr("180 W"));
  // It is no setting of another program: the knob may be turned, and is given back.
  EXPECT_TRUE(knob->Set(190_W).ok());
  EXPECT_TRUE(knob->Restore().ok());
  EXPECT_TRUE(daemon_.leases.empty());
}

TEST_F(DaemonDevicesTest, AGroupHasAllKnobsOrNone) {
  std::vector<std::unique_ptr<DeviceKnob>> members;
  for (const auto& gpu : gpus_)
    members.push_back(DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, *gpu).value());
  const auto group = KnobGroup::Of(std::move(members)).value();
  daemon_.held = "GPU-2";

  const Status set = group->Set(200_W);

  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, ErrorCode::kConflict);
  EXPECT_THAT(set.error().message, HasSubstr("resnet"));
  EXPECT_TRUE(daemon_.leases.empty());
}

TEST_F(DaemonDevicesTest, TheChoicesAreThoseThatTheCallerMaySet) {
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, *gpus_[0]).value();
  EXPECT_EQ(knob->Choices().value().lowest, Setting(150_W));
  EXPECT_EQ(gpus_[0]->CurrentPowerLimit().value().range.min, 100_W);
  EXPECT_EQ(knob->max_power(), 300_W);
}

TEST_F(DaemonDevicesTest, AKnobThatIsNotLentSaysSo) {
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGraphicsClock, *gpus_[1]);
  ASSERT_FALSE(knob.ok());
  EXPECT_EQ(knob.error().code, ErrorCode::kPermissionDenied);
}

TEST_F(DaemonDevicesTest, ARangeOfClocksAndTheKnobOfTheClockAreOneLease) {
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGraphicsClock, *gpus_[0]).value();
  ASSERT_TRUE(knob->Set(Hertz(1e9)).ok());
  ASSERT_TRUE(
      gpus_[0]
          ->LockClockWithoutJournal(ClockDomain::kGraphics, {.min = Hertz(5e8), .max = Hertz(8e8)})
          .ok());
  EXPECT_EQ(daemon_.leases.size(), 1U);
  ASSERT_TRUE(gpus_[0]->ResetClock(ClockDomain::kGraphics).ok());
  EXPECT_TRUE(daemon_.leases.empty());
}

TEST_F(DaemonDevicesTest, ALeaseThatWasEndedByOthersIsTakenAnew) {
  const auto knob = DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, *gpus_[0]).value();
  ASSERT_TRUE(knob->Set(200_W).ok());
  daemon_.leases.clear();
  EXPECT_FALSE(knob->CheckInForce(200_W).ok());
  ASSERT_TRUE(knob->Set(210_W).ok());
  EXPECT_EQ(daemon_.leases.size(), 1U);
}

TEST_F(DaemonDevicesTest, SettersWithoutAJournalAreLeasesToo) {
  EXPECT_FALSE(gpus_[0]->NeedsJournal());
  EXPECT_EQ(gpus_[0]->SetPowerLimitWithoutJournal(170_W).value().requested, 170_W);
  ASSERT_TRUE(gpus_[0]->SetPersistence(Persistence::kOn).ok());
  EXPECT_EQ(daemon_.leases.size(), 2U);
  EXPECT_EQ(gpus_[0]->CurrentPersistence().value(), Persistence::kOn);
  gpus_.clear();
  connection_.reset();
  EXPECT_TRUE(daemon_.leases.empty());
}

TEST_F(DaemonDevicesTest, WithoutABoardReadingsComeFromTheDaemon) {
  EXPECT_EQ(gpus_[0]->Energy().value().total, 1234.5_J);
  EXPECT_EQ(gpus_[0]->Power().value(), 211.5_W);
  EXPECT_EQ(gpus_[0]->Temperature().value(), Celsius(61));
  EXPECT_EQ(gpus_[1]->Energy().error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(gpus_[0]->Follow(), nullptr);
}

TEST_F(DaemonDevicesTest, ARestartOfTheDaemonIsWaitedForWithTheSameRequestId) {
  const auto client = Client();
  daemon_.absent = 4;
  const auto lease = client->CreateLease(
      {.requests = {{.key = {.device = "GPU-1"}, .demand = wire::Exactly{200_W}}}});
  ASSERT_TRUE(lease.ok());
  ASSERT_EQ(daemon_.calls.size(), 5U);
  EXPECT_EQ(daemon_.calls.front().body, daemon_.calls.back().body);
  EXPECT_FALSE(ParseJson(daemon_.calls[0].body).value()["request_id"].get<std::string>().empty());
}

TEST_F(DaemonDevicesTest, ADaemonThatStaysAwayIsGivenUpAfterFiveSeconds) {
  daemon_.absent = 1'000'000;
  const TimePoint begin = clock_.Now();
  EXPECT_EQ(Client()->Node().error().code, ErrorCode::kUnavailable);
  EXPECT_GT(clock_.Now() - begin, Seconds(4));
  EXPECT_LE(clock_.Now() - begin, NodeDaemonClient::kRestartTime);
}

TEST_F(DaemonDevicesTest, ARefusalIsAnErrorWithItsSentenceAndIsNotRepeated) {
  daemon_.refusal = {.kind = wire::LeaseRefusal::Kind::kForbidden, .message = "no scope"};
  const auto leases = Client()->Leases();
  ASSERT_FALSE(leases.ok());
  EXPECT_EQ(leases.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(leases.error().message, "no scope");
  EXPECT_EQ(daemon_.calls.size(), 1U);
}

TEST_F(DaemonDevicesTest, EndingALeaseThatIsGoneSucceeds) {
  EXPECT_TRUE(Client()->EndLease("lease_9").ok());
}

}  // namespace daemon_devices_test
}  // namespace zeus::client
