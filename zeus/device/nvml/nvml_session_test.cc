#include "zeus/device/nvml/nvml_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "zeus/base/process.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/device/nvml/nvml_gpu.h"
#include "zeus/device/nvml/testing/fake_nvml.h"

namespace zeus::nvml {
namespace nvml_session_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Mapping {
  Return code;
  ErrorCode expected;
};

class NvmlErrorTest : public ::testing::TestWithParam<Mapping> {};

TEST_P(NvmlErrorTest, EveryCodeHasOneOfOursAndASentence) {
  const Error error = NvmlError(GetParam().code, "gpu:0: read energy");
  EXPECT_EQ(error.code, GetParam().expected);
  EXPECT_THAT(error.message, StartsWith("gpu:0: read energy: "));
  EXPECT_GT(error.message.size(), std::string("gpu:0: read energy: ").size() + 10);
  EXPECT_THAT(error.message, ::testing::Not(HasSubstr("unknown code")));
}

INSTANTIATE_TEST_SUITE_P(
    All, NvmlErrorTest,
    ::testing::Values(
        Mapping{kUninitialized, ErrorCode::kUnavailable},
        Mapping{kInvalidArgument, ErrorCode::kInvalidArgument},
        Mapping{kNotSupported, ErrorCode::kNotSupported},
        Mapping{kNoPermission, ErrorCode::kPermissionDenied},
        Mapping{kAlreadyInitialized, ErrorCode::kInternal},
        Mapping{kNotFound, ErrorCode::kNotFound}, Mapping{kInsufficientSize, ErrorCode::kInternal},
        Mapping{kInsufficientPower, ErrorCode::kUnavailable},
        Mapping{kDriverNotLoaded, ErrorCode::kUnavailable},
        Mapping{kTimeout, ErrorCode::kUnavailable}, Mapping{kIrqIssue, ErrorCode::kUnavailable},
        Mapping{kLibraryNotFound, ErrorCode::kNotSupported},
        Mapping{kFunctionNotFound, ErrorCode::kNotSupported},
        Mapping{kCorruptedInforom, ErrorCode::kUnavailable},
        Mapping{kGpuIsLost, ErrorCode::kUnavailable},
        Mapping{kResetRequired, ErrorCode::kUnavailable},
        Mapping{kOperatingSystem, ErrorCode::kPermissionDenied},
        Mapping{kLibRmVersionMismatch, ErrorCode::kUnavailable},
        Mapping{kInUse, ErrorCode::kUnavailable}, Mapping{kMemory, ErrorCode::kUnavailable},
        Mapping{kNoData, ErrorCode::kUnavailable},
        Mapping{kVgpuEccNotSupported, ErrorCode::kNotSupported},
        Mapping{kInsufficientResources, ErrorCode::kUnavailable},
        Mapping{kFreqNotSupported, ErrorCode::kInvalidArgument},
        Mapping{kArgumentVersionMismatch, ErrorCode::kNotSupported},
        Mapping{kDeprecated, ErrorCode::kNotSupported}, Mapping{kNotReady, ErrorCode::kUnavailable},
        Mapping{kGpuNotFound, ErrorCode::kNotFound},
        Mapping{kInvalidState, ErrorCode::kUnavailable},
        Mapping{kResetTypeNotSupported, ErrorCode::kNotSupported},
        Mapping{kUnknown, ErrorCode::kUnavailable}),
    [](const auto& tested) { return "Code" + std::to_string(tested.param.code); });

TEST(NvmlErrorMessageTest, ACodeFromTheFutureKeepsItsNumber) {
  const Error error = NvmlError(4711, "read energy");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("4711"));
}

TEST(NvmlErrorMessageTest, ARefusalSaysWhoMay) {
  EXPECT_EQ(NvmlError(kNoPermission, "gpu:0: set power limit", Privilege::kUser).message,
            "gpu:0: set power limit: the driver refused: needs root (CAP_SYS_ADMIN in containers), "
            "or zeusd: see docs/daemon.md");
  EXPECT_EQ(
      NvmlError(kNoPermission, "gpu:0: set power limit", Privilege::kRoot).message,
      "gpu:0: set power limit: refused although this process has CAP_SYS_ADMIN: the container "
      "or the driver forbids it");
}

TEST(NvmlErrorMessageTest, ALibraryThatSaysMoreThanNvmlIsQuoted) {
  const Error error = InitError(kDriverNotLoaded, "initialise NVML", "no simulated node \x1b[2J");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message, "initialise NVML: no simulated node \\x1b[2J");
  EXPECT_EQ(SplitRemedy(error).remedy, "");
}

TEST(NvmlErrorMessageTest, NvmlsOwnWordsAddNothingToAKnownCode) {
  for (const char* said : {"", "Driver Not Loaded", "driver not loaded"}) {
    EXPECT_EQ(InitError(kDriverNotLoaded, "initialise NVML", said).message,
              NvmlError(kDriverNotLoaded, "initialise NVML").message);
  }
  EXPECT_EQ(InitError(kUnknown, "initialise NVML", "Unknown Error").message,
            NvmlError(kUnknown, "initialise NVML").message);
}

TEST(NvmlErrorMessageTest, ACodeFromTheFutureIsExplainedByTheLibrary) {
  EXPECT_EQ(InitError(4711, "initialise NVML", "Too Hot").message,
            NvmlError(4711, "initialise NVML").message + " (Too Hot)");
}

TEST(NvmlErrorMessageTest, TheRemedyCanBeSplitOff) {
  const auto split = SplitRemedy(NvmlError(kDriverNotLoaded, "initialise NVML").While("discover"));
  EXPECT_EQ(split.problem, "discover: initialise NVML: the NVIDIA kernel driver is not loaded");
  EXPECT_EQ(split.remedy, "run modprobe nvidia");
  EXPECT_EQ(SplitRemedy(NvmlError(kNotSupported, "read energy")).remedy, "");
}

TEST(NvmlErrorMessageTest, OnlyALostDeviceIsGone) {
  EXPECT_TRUE(DeviceIsGone(kGpuIsLost));
  EXPECT_TRUE(DeviceIsGone(kResetRequired));
  EXPECT_FALSE(DeviceIsGone(kTimeout));
  EXPECT_FALSE(DeviceIsGone(kSuccess));
  EXPECT_FALSE(NeverWorks(kGpuIsLost));
  EXPECT_FALSE(NeverWorks(kSuccess));
}

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
  NvmlHandle::Process& parent = *handle.Current().value().process;
  const std::lock_guard lock(parent.energy_mutex);
  EXPECT_TRUE(HoldsInAChild([&] {
    const auto own = handle.Current();
    return own.ok() && own.value().process != &parent &&
           own.value().process->energy_mutex.try_lock();
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

class NvmlClosingTest : public ::testing::Test {
 protected:
  NvmlClosingTest() {
    for (std::size_t i = 0; i < 3; ++i) {
      Device device = nullptr;
      EXPECT_EQ(fake_.api().get_handle_by_index(static_cast<unsigned>(i), &device), kSuccess);
      gpus_.push_back(NvmlGpu::Open(session_, device, fmt::format("gpu:{}", i)).value());
    }
  }

  FakeNvml fake_{3};
  std::shared_ptr<NvmlSession> session_ = NvmlSession::Open(fake_.api()).value();
  std::vector<std::unique_ptr<NvmlGpu>> gpus_;
};

TEST_F(NvmlClosingTest, AGpuThatWasLetGoIsClosedAndNotAsked) {
  ASSERT_TRUE(fake_.board(1).open);
  ASSERT_TRUE(gpus_[1]->LetGo().ok());
  fake_.board(1).calls.clear();
  EXPECT_EQ(gpus_[1]->Energy().error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(gpus_[1]->SetPersistence(Persistence::kOn).error().message,
              HasSubstr("in maintenance"));
  EXPECT_EQ(gpus_[1]->Read().throttle.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(fake_.board(1).calls.empty());
  EXPECT_FALSE(fake_.board(1).open);
  gpus_[1]->TakeBack();
  EXPECT_TRUE(gpus_[1]->Energy().ok());
  EXPECT_TRUE(fake_.board(1).open);
}

TEST_F(NvmlClosingTest, TheOthersAreOpenedAgainAndGoOnCounting) {
  // An epoch, so that the total differs from the raw counter.
  ASSERT_EQ(gpus_[2]->Energy().value().total, Joules(5000));
  fake_.board(2).energy = 1'000'000;
  ASSERT_EQ(gpus_[2]->Energy().value().epoch, 1U);
  ASSERT_TRUE(gpus_[1]->LetGo().ok());
  EXPECT_EQ(fake_.users(), 0);
  fake_.board(2).energy = 1'500'000;
  const auto after = gpus_[2]->Energy();
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after.value().epoch, 1U);
  EXPECT_EQ(after.value().total, Joules(6500));
  EXPECT_TRUE(gpus_[0]->SetPersistence(Persistence::kOn).ok());
  EXPECT_EQ(fake_.users(), 1);
  // The GPU after it was not looked for by a UUID, which would have opened it.
  EXPECT_FALSE(fake_.board(1).open);
}

TEST_F(NvmlClosingTest, NothingIsClosedWhileACallDoesNotReturn) {
  {
    const auto use = session_->Begin();
    const Status closed = session_->Close(Seconds(0.01));
    EXPECT_EQ(closed.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(closed.error().message, HasSubstr("does not return"));
  }
  EXPECT_EQ(fake_.openings(), 0);
  EXPECT_TRUE(gpus_[0]->Energy().ok());
  EXPECT_TRUE(session_->Close(Seconds(0.01)).ok());
}

TEST_F(NvmlClosingTest, ADriverThatDoesNotStartAgainIsTriedAgain) {
  ASSERT_TRUE(gpus_[1]->LetGo().ok());
  fake_.init_result = kDriverNotLoaded;
  EXPECT_EQ(gpus_[0]->Energy().error().code, ErrorCode::kUnavailable);
  fake_.init_result = kSuccess;
  EXPECT_TRUE(gpus_[0]->Energy().ok());
}

TEST_F(NvmlClosingTest, ReadersOfOtherGpusNoticeNothing) {
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> readers;
  for (const std::size_t gpu : {0, 0, 2})
    readers.emplace_back([&, gpu] {
      while (!stop)
        if (!gpus_[gpu]->Read().energy.ok() || !gpus_[gpu]->CurrentPersistence().ok()) ++failed;
    });
  for (int round = 0; round < 200; ++round) {
    EXPECT_TRUE(gpus_[1]->LetGo().ok());
    gpus_[1]->TakeBack();
    EXPECT_TRUE(gpus_[1]->Energy().ok());
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(NvmlClosingTest, AChildThatIsForkedMeanwhileDoesNotWait) {
  const auto use = session_->Begin();
  std::thread closer([&] { EXPECT_FALSE(session_->Close(Seconds(0.5)).ok()); });
  EXPECT_TRUE(HoldsInAChild([&] { return gpus_[0]->Energy().ok(); }));
  closer.join();
}

}  // namespace nvml_session_test
}  // namespace zeus::nvml
