#include "zeus/device/amd/amd_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "zeus/device/amd/amd_discovery.h"
#include "zeus/device/amd/sysfs_board.h"
#include "zeus/device/amd/testing/amdgpu_tree.h"
#include "zeus/device/amd/testing/fake_smi.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus {
namespace amd_gpu_test {

using ::testing::HasSubstr;
using ::zeus::testing::AmdgpuTree;
using namespace zeus::literals;
using namespace std::chrono_literals;

class AmdGpuTest : public ::testing::Test {
 protected:
  AmdGpuTest() { tree_.AddCard(0, "0000:03:00.0"); }

  std::unique_ptr<amd::Board> Board() {
    return std::make_unique<amd::SysfsBoard>(amd::FindCards(tree_.sysfs()).cards.at(0));
  }

  AmdGpu& gpu() {
    if (!gpu_) gpu_ = std::make_unique<AmdGpu>("gpu:0", Board(), clock_);
    return *gpu_;
  }

  VirtualClock clock_;
  AmdgpuTree tree_;
  std::unique_ptr<AmdGpu> gpu_;
};

// A board that says what it is told: for what a tree of plain files cannot do.
class ScriptedBoard final : public amd::Board {
 public:
  ScriptedBoard()
      : Board({.uuid = "", .pci_address = "", .model = "", .driver = "", .vendor = {}}) {}

  Result<amd::PowerCap> Cap() override { return cap; }
  Status SetCap(Watts limit) override {
    if (refusal) return *refusal;
    cap.current = std::min(limit, strictest);
    cap.current = std::max(cap.current, laxest);
    return Ok();
  }

  amd::PowerCap cap{.range = {.min = 0_W, .max = 300_W}, .default_limit = 300_W, .current = 300_W};
  Watts strictest = 300_W;
  Watts laxest = 0_W;
  std::optional<Error> refusal;
};

TEST_F(AmdGpuTest, OneTickIsExactly2ToTheMinus16Joules) {
  tree_.SetEnergy(0, 65536);
  EXPECT_EQ(gpu().Energy().value().total, 1_J);
  tree_.SetEnergy(0, 65536 + 1);
  EXPECT_EQ(gpu().Energy().value().total.value(), 1.0 + 1.0 / 65536);
}

TEST_F(AmdGpuTest, ADecreasingCounterStartsANewEpoch) {
  tree_.SetEnergy(0, 65536 * 1000);
  const auto before = gpu().Energy().value();
  tree_.SetEnergy(0, 65536 * 3);
  const auto after = gpu().Energy().value();
  EXPECT_EQ(after.total - before.total, 3_J);
  EXPECT_EQ(after.epoch, before.epoch + 1);
}

TEST_F(AmdGpuTest, ACounterThatStandsStillUnderLoadIsUnavailableUntilItMoves) {
  const auto before = gpu().Energy().value();
  clock_.Advance(500ms);
  ASSERT_TRUE(gpu().Energy().ok());
  clock_.Advance(600ms);
  const auto stale = gpu().Energy();
  ASSERT_FALSE(stale.ok());
  EXPECT_EQ(stale.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(stale.error().message, HasSubstr("stands still; integrate power"));
  EXPECT_TRUE(gpu().Power().ok());
  tree_.Advance(0, 1s);
  const auto moved = gpu().Energy();
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved.value().total - before.total, 100_J);
  EXPECT_EQ(moved.value().epoch, before.epoch + 1);  // The energy that was used meanwhile is lost.
}

TEST_F(AmdGpuTest, ACounterThatStandsStillAtIdleIsFine) {
  tree_.Set(0, "hwmon/power1_average", "5000000\n");
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(gpu().Energy().ok());
    clock_.Advance(1s);
  }
}

TEST_F(AmdGpuTest, PowerIsTheAverageWhereThereIsNoInstantPower) {
  EXPECT_EQ(gpu().Power().value(), 100_W);
  EXPECT_EQ(gpu().Power(PowerKind::kInstant).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(gpu().Power(PowerKind::kMemory).error().code, ErrorCode::kNotSupported);
}

TEST_F(AmdGpuTest, TheSecondDieNamesTheOneThatCounts) {
  AmdGpu die("gpu:1", Board(), clock_, "0000:c1:00.0");
  for (const auto& error :
       {die.Energy().error(), die.Power().error(), die.CurrentPowerLimit().error(),
        die.SetPowerLimitWithoutJournal(200_W).error(), die.Read().energy.error(),
        die.Read().enforced_limit.error()}) {
    EXPECT_EQ(error.code, ErrorCode::kNotSupported);
    EXPECT_THAT(error.message, HasSubstr("0000:c1:00.0"));
  }
  EXPECT_TRUE(die.Temperature().ok());
  EXPECT_TRUE(die.CurrentUtilization().ok());
}

TEST_F(AmdGpuTest, ALimitIsReadBack) {
  const auto set = gpu().SetPowerLimitWithoutJournal(200_W);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set.value().requested, 200_W);
  EXPECT_EQ(set.value().enforced, 200_W);
  EXPECT_EQ(tree_.Get(0, "hwmon/power1_cap"), "200000000");
}

TEST_F(AmdGpuTest, AStricterCapThanRequestedIsToldNotRefused) {
  auto board = std::make_unique<ScriptedBoard>();
  board->strictest = 150_W;
  AmdGpu gpu("gpu:0", std::move(board), clock_);
  const auto set = gpu.SetPowerLimitWithoutJournal(200_W);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set.value().requested, 200_W);
  EXPECT_EQ(set.value().enforced, 150_W);
  EXPECT_EQ(gpu.CurrentPowerLimit().value().requested, 200_W);
}

TEST_F(AmdGpuTest, ACapThatAnotherProgramChangedIsTheNewRequest) {
  ASSERT_TRUE(gpu().SetPowerLimitWithoutJournal(200_W).ok());
  tree_.Set(0, "hwmon/power1_cap", "250000000\n");
  EXPECT_EQ(gpu().CurrentPowerLimit().value().requested, 250_W);
  EXPECT_EQ(gpu().CurrentPowerLimit().value().enforced, 250_W);
}

TEST_F(AmdGpuTest, ALimitThatTheDeviceDidNotTakeIsUnavailable) {
  auto board = std::make_unique<ScriptedBoard>();
  board->laxest = 300_W;
  AmdGpu gpu("gpu:0", std::move(board), clock_);
  const auto set = gpu.SetPowerLimitWithoutJournal(200_W);
  EXPECT_EQ(set.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(set.error().message, "gpu:0 did not take a power limit of 200 W: 300 W is in force");
}

TEST_F(AmdGpuTest, ARefusedSetterSaysWhatItWasDoing) {
  auto board = std::make_unique<ScriptedBoard>();
  board->refusal = Error{ErrorCode::kPermissionDenied, "permission denied"};
  AmdGpu gpu("gpu:0", std::move(board), clock_);
  const auto set = gpu.SetPowerLimitWithoutJournal(200_W);
  EXPECT_EQ(set.error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(set.error().message, "set power limit of gpu:0: permission denied");
}

TEST_F(AmdGpuTest, ACapOfZeroIsNeverWritten) {
  AmdGpu gpu("gpu:0", std::make_unique<ScriptedBoard>(), clock_);
  EXPECT_EQ(gpu.SetPowerLimitWithoutJournal(0_W).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(gpu.SetPowerLimitWithoutJournal(301_W).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(AmdGpuTest, ClocksOutsideTheTableAreRefused) {
  EXPECT_EQ(gpu().LockClockWithoutJournal(ClockDomain::kGraphics, {900_MHz, 1000_MHz}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(tree_.Get(0, "power_dpm_force_performance_level"), "auto\n");
}

TEST_F(AmdGpuTest, ThereIsNoPersistenceModeToReadOrSet) {
  const auto mode = gpu().CurrentPersistence();
  ASSERT_FALSE(mode.ok());
  EXPECT_EQ(mode.error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(mode.error().message, "amdgpu has no persistence mode");
  EXPECT_EQ(gpu().SetPersistence(Persistence::kOn).error().code, ErrorCode::kNotSupported);
}

}  // namespace amd_gpu_test
}  // namespace zeus

namespace zeus::testing {
namespace amd_gpu_test {

std::unique_ptr<Gpu> FirstGpu(Clock& clock, const AmdgpuTree& tree,
                              const amd::SmiStarters& starters) {
  auto findings = amd::Discover({.clock = clock,
                                 .sysfs = tree.sysfs(),
                                 .procfs = tree.sysfs(),
                                 .environment = [](const std::string&) { return std::nullopt; }},
                                starters);
  return std::move(findings.value().gpus.at(0));
}

Result<std::shared_ptr<amd::Smi>> NotInstalled(const std::optional<std::string>& /*path*/) {
  return Error{ErrorCode::kNotFound, "not installed"};
}

struct SysfsFactory {
  SysfsFactory() { tree.AddCard(0, "0000:03:00.0"); }

  std::unique_ptr<Gpu> Make() {
    return FirstGpu(clock, tree, {.amd_smi = NotInstalled, .rocm_smi = NotInstalled});
  }
  void Advance(Seconds by) {
    clock.Advance(by);
    tree.Advance(0, by);
  }

  VirtualClock clock;
  AmdgpuTree tree;
};

Result<std::shared_ptr<amd::Smi>> StartRocm(const std::optional<std::string>& /*path*/) {
  return amd::StartRocmSmi(FakeSmi::Rocm());
}

Result<std::shared_ptr<amd::Smi>> StartAmd(const std::optional<std::string>& /*path*/) {
  return amd::StartAmdSmi(FakeSmi::Amd());
}

struct SmiFactory {
  SmiFactory(amd::SmiStarters::Start rocm, amd::SmiStarters::Start amd)
      : starters{.amd_smi = std::move(amd), .rocm_smi = std::move(rocm)} {
    tree.AddCard(0, "0000:03:00.0");
  }

  std::unique_ptr<Gpu> Make() { return FirstGpu(clock, tree, starters); }

  amd::SmiStarters starters;
  VirtualClock clock;
  AmdgpuTree tree;
  FakeSmi fake{{FakeSmi::FakeBoard{}}};
};

struct SecondDieFactory {
  SecondDieFactory() {
    tree.AddCard(0, "0000:03:00.0");
    tree.MakeSecondDie(0);
  }

  std::unique_ptr<Gpu> Make() {
    return FirstGpu(clock, tree, {.amd_smi = NotInstalled, .rocm_smi = NotInstalled});
  }

  VirtualClock clock;
  AmdgpuTree tree;
};

INSTANTIATE_TEST_SUITE_P(
    Amd, GpuConformance,
    ::testing::Values(GpuCaseOf<SysfsFactory>("Sysfs"), GpuCaseOf<SecondDieFactory>("SecondDie"),
                      GpuCaseOf<SmiFactory>("RocmSmi", StartRocm, NotInstalled),
                      GpuCaseOf<SmiFactory>("AmdSmi", NotInstalled, StartAmd)),
    NameOfCase());

}  // namespace amd_gpu_test
}  // namespace zeus::testing
