#include "zeus/device/nvml/nvml_session.h"

#include <gtest/gtest.h>

#include "zeus/base/fork.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/device/nvml/nvml_gpu.h"
#include "zeus/device/nvml/testing/fake_nvml.h"

namespace zeus::nvml {
namespace nvml_session_test {

using testing::FakeNvml;
using zeus::testing::HoldsInAChild;

TEST(NvmlSessionTest, TheLastUserShutsDown) {
  FakeNvml fake;
  auto first = NvmlSession::Open(fake.api()).value();
  auto second = first;
  EXPECT_EQ(fake.users(), 1);
  first.reset();
  EXPECT_EQ(fake.users(), 1);
  second.reset();
  EXPECT_EQ(fake.users(), 0);
}

TEST(NvmlSessionTest, AGpuKeepsTheSessionOpen) {
  FakeNvml fake;
  auto session = NvmlSession::Open(fake.api()).value();
  auto gpu = NvmlGpu::Open(session, fake.handle(), "gpu:0").value();
  session.reset();
  EXPECT_TRUE(gpu->Energy().ok());
  gpu.reset();
  EXPECT_EQ(fake.users(), 0);
}

TEST(NvmlSessionTest, AFailedInitialisationLeavesNothingOpen) {
  FakeNvml fake;
  fake.init_result = kLibRmVersionMismatch;
  const auto session = NvmlSession::Open(fake.api());
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(fake.users(), 0);
}

TEST(NvmlForkTest, TheChildInitialisesAgainAndFindsItsGpu) {
  FakeNvml fake(2);
  auto session = NvmlSession::Open(fake.api()).value();
  auto gpu = NvmlGpu::Open(session, fake.handle(1), "gpu:1").value();
  fake.board(1).energy = 7'000'000;
  EXPECT_TRUE(HoldsInAChild([&] {
    const GpuReading reading = gpu->Read();
    return fake.users() == 1 && reading.energy.ok() && reading.temperature.ok() &&
           reading.energy.value().total == Joules(7000) &&
           gpu->SetPowerLimitWithoutJournal(Watts(150)).ok() &&
           gpu->identity().uuid == fake.board(1).uuid;
  }));
  EXPECT_TRUE(gpu->Energy().ok());
}

TEST(NvmlForkTest, TheChildGoesOnCountingWithoutAnEpochOrADoubleCount) {
  FakeNvml fake;
  auto session = NvmlSession::Open(fake.api()).value();
  auto gpu = NvmlGpu::Open(session, fake.handle(), "gpu:0").value();
  // An epoch of the parent, so that the total differs from the raw counter.
  ASSERT_EQ(gpu->Energy().value().total, Joules(5000));
  fake.board().energy = 1'000'000;
  const EnergyReading before = gpu->Energy().value();
  ASSERT_EQ(before.epoch, 1U);
  fake.board().energy = 1'500'000;
  EXPECT_TRUE(HoldsInAChild([&] {
    const auto after = gpu->Energy();
    return after.ok() && after.value().epoch == 1 && after.value().total == Joules(6500);
  }));
  EXPECT_EQ(gpu->Energy().value().total, Joules(6500));
}

TEST(NvmlForkTest, AChildForkedWhileTheCounterWasLockedIsNotStuck) {
  FakeNvml fake;
  auto session = NvmlSession::Open(fake.api()).value();
  const GpuIdentity identity{.uuid = fake.board().uuid,
                             .pci_address = "",
                             .model = "",
                             .driver = "",
                             .vendor = Vendor::kNvidia};
  NvmlHandle handle(session, fake.handle(), identity);
  NvmlHandle::Process& parent = *handle.Current().value();
  const std::lock_guard lock(parent.energy_mutex);
  EXPECT_TRUE(HoldsInAChild([&] {
    const auto own = handle.Current();
    return own.ok() && own.value() != &parent && own.value()->energy_mutex.try_lock();
  }));
}

TEST(NvmlForkTest, AGrandchildWorksToo) {
  FakeNvml fake;
  auto session = NvmlSession::Open(fake.api()).value();
  auto gpu = NvmlGpu::Open(session, fake.handle(), "gpu:0").value();
  EXPECT_TRUE(HoldsInAChild([&] {
    const bool child = gpu->Energy().ok();
    return child && HoldsInAChild([&] { return gpu->Energy().ok() && ForkGeneration() == 2; });
  }));
}

TEST(NvmlForkTest, AChildThatCannotInitialiseSaysSo) {
  FakeNvml fake;
  auto session = NvmlSession::Open(fake.api()).value();
  auto gpu = NvmlGpu::Open(session, fake.handle(), "gpu:0").value();
  EXPECT_TRUE(HoldsInAChild([&] {
    fake.init_result = kNoPermission;
    const GpuReading reading = gpu->Read();
    return !reading.energy.ok() && reading.energy.error().code == ErrorCode::kPermissionDenied &&
           !reading.throttle.ok();
  }));
}

TEST(NvmlForkTest, AChildThatDoesNotUseItShutsNothingDown) {
  FakeNvml fake;
  auto session = NvmlSession::Open(fake.api()).value();
  EXPECT_TRUE(HoldsInAChild([&] {
    session.reset();
    return fake.users() == 1;
  }));
}

}  // namespace nvml_session_test
}  // namespace zeus::nvml
