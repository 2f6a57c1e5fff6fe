#include "zeus/device/amd/sysfs_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "zeus/base/testing/unprivileged.h"
#include "zeus/device/amd/testing/amdgpu_tree.h"

namespace zeus::amd {
namespace sysfs_board_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::zeus::testing::AmdgpuTree;
using ::zeus::testing::GpuMetricsFile;
using namespace zeus::literals;

class SysfsBoardTest : public ::testing::Test {
 protected:
  SysfsBoardTest() { tree_.AddCard(0, "0000:03:00.0"); }

  SysfsBoard& board() {
    if (!board_) board_.emplace(FindCards(tree_.sysfs()).cards.at(0));
    return *board_;
  }

  AmdgpuTree tree_;
  std::optional<SysfsBoard> board_;
};

TEST_F(SysfsBoardTest, ReadsEverythingInItsUnit) {
  const auto energy = board().Energy().value();
  EXPECT_EQ(energy.ticks, 65536000U);
  EXPECT_EQ(energy.tick.value(), 1.0 / 65536.0);
  EXPECT_EQ(board().Power(PowerKind::kOneSecondAverage).value(), 100_W);
  EXPECT_EQ(board().Temperature().value(), 41_degC);
  EXPECT_EQ(board().Busy().value().compute, 0.97);
  EXPECT_EQ(board().Busy().value().memory, 0.31);
  EXPECT_EQ(board().Memory().value().used_bytes, 10737418240U);
  EXPECT_EQ(board().Memory().value().total_bytes, 68702699520U);
  EXPECT_EQ(board().Clock(ClockDomain::kGraphics).value(), 800_MHz);
  EXPECT_EQ(board().Clock(ClockDomain::kMemory).value(), 1600_MHz);
  EXPECT_EQ(board().Cap().value().range.min, 100_W);
  EXPECT_EQ(board().Cap().value().range.max, 300_W);
  EXPECT_EQ(board().Cap().value().default_limit, 300_W);
  EXPECT_EQ(board().Cap().value().current, 300_W);
  EXPECT_THAT(board().SupportedClocks(ClockDomain::kGraphics).value(),
              ElementsAre(500_MHz, 800_MHz, 1700_MHz));
}

TEST_F(SysfsBoardTest, InstantPowerComesFromHwmonElseFromTheMetrics) {
  EXPECT_EQ(board().Power(PowerKind::kInstant).error().code, ErrorCode::kNotSupported);
  tree_.Set(0, "gpu_metrics", GpuMetricsFile{.content = 4, .watts = 250}.Bytes());
  EXPECT_EQ(board().Power(PowerKind::kInstant).value(), 250_W);
  tree_.Set(0, "hwmon/power1_input", "260000000\n");
  EXPECT_EQ(board().Power(PowerKind::kInstant).value(), 260_W);
}

TEST_F(SysfsBoardTest, AMissingFileIsNotSupportedAndNamed) {
  tree_.Remove(0, "hwmon/temp1_input");
  EXPECT_EQ(board().Temperature().error().code, ErrorCode::kNotSupported);
  tree_.Set(0, "hwmon/temp2_input", "52000\n");
  EXPECT_EQ(board().Temperature().value(), 52_degC);
  tree_.Remove(0, "mem_busy_percent");
  EXPECT_THAT(board().Busy().error().message, HasSubstr("mem_busy_percent"));
  tree_.Remove(0, "gpu_metrics");
  EXPECT_EQ(board().Energy().error().code, ErrorCode::kNotSupported);
}

TEST_F(SysfsBoardTest, ABoardThatIsGoneIsUnavailable) {
  board();
  std::filesystem::remove_all(tree_.sysfs() / "devices");
  EXPECT_EQ(board().Energy().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(board().Temperature().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(board().SetCap(200_W).error().code, ErrorCode::kUnavailable);
}

TEST_F(SysfsBoardTest, ABoardWithoutHwmonSaysSo) {
  tree_.Remove(0, "hwmon");
  EXPECT_EQ(board().Temperature().error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(board().Cap().error().message, HasSubstr("no hwmon"));
  EXPECT_FALSE(board().SetCap(200_W).ok());
}

TEST_F(SysfsBoardTest, EmptyHugeAndBinaryFilesAreErrorsNotValues) {
  const std::string contents[] = {"", "\n", std::string(1U << 20U, '9'),
                                  std::string("\0\x01\xff", 3), "12x\n"};
  for (const std::string& content : contents) {
    for (const char* file :
         {"hwmon/power1_average", "hwmon/power1_cap", "hwmon/temp1_input", "hwmon/freq1_input",
          "gpu_busy_percent", "mem_info_vram_used", "gpu_metrics", "pp_dpm_sclk"})
      tree_.Set(0, file, content);
    SysfsBoard board(FindCards(tree_.sysfs()).cards.at(0));
    EXPECT_EQ(board.Power(PowerKind::kOneSecondAverage).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(board.Cap().error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(board.Temperature().error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(board.Clock(ClockDomain::kGraphics).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(board.Busy().error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(board.Memory().error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(board.Energy().ok());
    EXPECT_EQ(board.SupportedClocks(ClockDomain::kGraphics).error().code, ErrorCode::kUnavailable);
  }
}

TEST_F(SysfsBoardTest, AnUnreadableFileIsPermissionDenied) {
  ASSERT_EQ(::chmod(tree_.File(0, "gpu_metrics").c_str(), 0), 0);
  ASSERT_EQ(::chmod(tree_.sysfs().c_str(), 0755), 0);
  const zeus::testing::Unprivileged nobody;
  if (!nobody.effective()) GTEST_SKIP() << "this user reads everything and cannot become another";
  EXPECT_EQ(board().Energy().error().code, ErrorCode::kPermissionDenied);
}

TEST_F(SysfsBoardTest, AnAccumulatorThatIsNotFilledIsNotSupported) {
  tree_.SetEnergy(0, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(board().Energy().error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(board().Energy().error().message, HasSubstr("does not fill"));
}

TEST_F(SysfsBoardTest, WritesCapsInMicrowatts) {
  ASSERT_TRUE(board().SetCap(212.5_W).ok());
  EXPECT_EQ(tree_.Get(0, "hwmon/power1_cap"), "212500000");
}

TEST_F(SysfsBoardTest, WithoutADefaultCapTheMaximumIsTheDefault) {
  tree_.Remove(0, "hwmon/power1_cap_default");
  tree_.Set(0, "hwmon/power1_cap", "150000000\n");
  EXPECT_EQ(board().Cap().value().default_limit, 300_W);
}

TEST_F(SysfsBoardTest, LocksClocksByLevelAndPutsTheOldModeBack) {
  tree_.Set(0, "power_dpm_force_performance_level", "high\n");
  ASSERT_TRUE(board().LockClock(ClockDomain::kGraphics, {500_MHz, 800_MHz}).ok());
  EXPECT_EQ(tree_.Get(0, "power_dpm_force_performance_level"), "manual");
  EXPECT_EQ(tree_.Get(0, "pp_dpm_sclk"), "0 1 \n");
  ASSERT_TRUE(board().LockClock(ClockDomain::kMemory, {400_MHz, 400_MHz}).ok());
  ASSERT_TRUE(board().ResetClock(ClockDomain::kGraphics).ok());
  EXPECT_EQ(tree_.Get(0, "pp_dpm_sclk"), "0 1 2 \n");
  EXPECT_EQ(tree_.Get(0, "power_dpm_force_performance_level"), "manual");
  ASSERT_TRUE(board().ResetClock(ClockDomain::kMemory).ok());
  EXPECT_EQ(tree_.Get(0, "power_dpm_force_performance_level"), "high");
}

TEST_F(SysfsBoardTest, LocksClocksByRangeWhereOverdriveAllowsIt) {
  tree_.Set(0, "pp_od_clk_voltage",
            "OD_SCLK:\n0: 500Mhz\n1: 1700Mhz\nOD_RANGE:\nSCLK: 500Mhz 1700Mhz\n");
  ASSERT_TRUE(board().LockClock(ClockDomain::kGraphics, {600_MHz, 900_MHz}).ok());
  EXPECT_EQ(tree_.Get(0, "pp_od_clk_voltage"), "c\n");  // The commit comes last.
  EXPECT_EQ(tree_.Get(0, "pp_dpm_sclk"), "0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n");
}

TEST_F(SysfsBoardTest, AFailedLockLeavesTheModeAlone) {
  board().SupportedClocks(ClockDomain::kGraphics).value();
  tree_.Remove(0, "pp_dpm_sclk");
  EXPECT_FALSE(board().LockClock(ClockDomain::kGraphics, {500_MHz, 500_MHz}).ok());
  EXPECT_EQ(tree_.Get(0, "power_dpm_force_performance_level"), "auto");
}

TEST_F(SysfsBoardTest, ResetWithoutALockOfOursReturnsToTheDriversChoice) {
  tree_.Set(0, "power_dpm_force_performance_level", "low\n");
  ASSERT_TRUE(board().ResetClock(ClockDomain::kGraphics).ok());
  EXPECT_EQ(tree_.Get(0, "power_dpm_force_performance_level"), "auto");
}

TEST_F(SysfsBoardTest, ClocksThatCannotBeLockedAreNotSupported) {
  tree_.Remove(0, "power_dpm_force_performance_level");
  EXPECT_EQ(board().LockClock(ClockDomain::kGraphics, {500_MHz, 500_MHz}).error().code,
            ErrorCode::kNotSupported);
  EXPECT_EQ(board().ResetClock(ClockDomain::kGraphics).error().code, ErrorCode::kNotSupported);
}

}  // namespace sysfs_board_test
}  // namespace zeus::amd
