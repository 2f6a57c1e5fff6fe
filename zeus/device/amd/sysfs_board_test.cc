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
using ::testing::IsEmpty;
using ::zeus::testing::AmdgpuTree;
using namespace zeus::literals;

TEST(AmdgpuSysfsTest, FindsCardsByPciAddressWithTheirIdentity) {
  AmdgpuTree tree;
  tree.AddCard(0, "0000:83:00.0");
  tree.AddCard(10, "0000:03:00.0");
  const CardList list = FindCards(tree.sysfs());
  ASSERT_EQ(list.cards.size(), 2U);
  EXPECT_EQ(list.cards[0].identity.pci_address, "0000:03:00.0");
  EXPECT_EQ(list.cards[0].identity.model, "AMD INSTINCT MI210");
  EXPECT_EQ(list.cards[0].identity.uuid, "18f68e602b8a000a");
  EXPECT_EQ(list.cards[0].identity.vendor, Vendor::kAmd);
  EXPECT_EQ(list.cards[0].hwmon.filename(), "hwmon3");
  EXPECT_EQ(list.cards[1].identity.pci_address, "0000:83:00.0");
  EXPECT_THAT(list.unbound, IsEmpty());
}

TEST(AmdgpuSysfsTest, TheLinkNamesTheDeviceWhereUeventDoesNot) {
  AmdgpuTree tree;
  tree.AddCard(0, "0000:c1:00.0");
  tree.Set(0, "uevent", "DRIVER=amdgpu\n");
  EXPECT_EQ(FindCards(tree.sysfs()).cards.at(0).identity.pci_address, "0000:c1:00.0");
}

TEST(AmdgpuSysfsTest, AnUnnamedBoardIsCalledByItsChip) {
  AmdgpuTree tree;
  tree.AddCard(0, "0000:03:00.0");
  tree.Remove(0, "product_name");
  tree.Remove(0, "unique_id");
  const auto identity = FindCards(tree.sysfs()).cards.at(0).identity;
  EXPECT_EQ(identity.model, "AMD GPU 0x740f");
  EXPECT_EQ(identity.uuid, "");
}

TEST(AmdgpuSysfsTest, OtherVendorsConnectorsAndGarbageAreNoCards) {
  AmdgpuTree tree;
  tree.AddCard(0, "0000:03:00.0");
  tree.Set(0, "vendor", "0x10de\n");
  tree.AddCard(1, "0000:04:00.0");
  tree.Set(1, "vendor", std::string("\0\xff", 2));
  std::filesystem::create_directories(tree.sysfs() / "class/drm/card7-HDMI-A-1/device");
  std::filesystem::create_directories(tree.sysfs() / "class/drm/renderD128");
  EXPECT_THAT(FindCards(tree.sysfs()).cards, IsEmpty());
  EXPECT_THAT(FindCards(tree.sysfs() / "absent").cards, IsEmpty());
}

TEST(AmdgpuSysfsTest, TellsBoardsThatAmdgpuDoesNotDrive) {
  AmdgpuTree tree;
  tree.AddBareDevice("0000:03:00.0", "");
  tree.AddBareDevice("0000:04:00.0", "vfio-pci");
  const CardList list = FindCards(tree.sysfs());
  ASSERT_EQ(list.unbound.size(), 2U);
  EXPECT_EQ(list.unbound[0].driver, "");
  EXPECT_EQ(list.unbound[1].pci_address, "0000:04:00.0");
  EXPECT_EQ(list.unbound[1].driver, "vfio-pci");
}

TEST(AmdgpuSysfsTest, TheRuntimeCountsNodesByNumberAndSkipsCpus) {
  AmdgpuTree tree;
  tree.AddNode(0, AmdgpuTree::NodeKind::kCpu, 0);
  tree.AddNode(10, AmdgpuTree::NodeKind::kGpu, 0x03);
  tree.AddNode(9, AmdgpuTree::NodeKind::kGpu, 0xc1);
  EXPECT_THAT(RuntimeOrder(tree.sysfs()), ElementsAre("0000:c1:00.0", "0000:03:00.0"));
  EXPECT_THAT(RuntimeOrder(tree.sysfs() / "absent"), IsEmpty());
}

TEST(AmdgpuSysfsTest, ReadsClockLevels) {
  const auto levels = ParseClockLevels("S: 19Mhz *\n0: 500Mhz\n1: 1700MHz *\n").value();
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0].index, 0U);
  EXPECT_EQ(levels[0].clock, 500_MHz);
  EXPECT_EQ(levels[1].index, 1U);
  EXPECT_EQ(levels[1].clock, 1700_MHz);
}

TEST(AmdgpuSysfsTest, RefusesTextThatIsNoTableOfLevels) {
  for (const char* text : {"", "\n\n", "garbage", "0: 500", "0 500Mhz", "0: Mhz", "0: -5Mhz",
                           "0: 500Mhz\nx", "99: 500Mhz", "S: 19Mhz"})
    EXPECT_FALSE(ParseClockLevels(text).ok()) << text;
}

TEST(AmdgpuSysfsTest, ReadsTheRangeOfOverdrive) {
  const char* text =
      "OD_SCLK:\n0: 500Mhz\n1: 1600Mhz\nOD_MCLK:\n1: 1600Mhz\nOD_RANGE:\n"
      "SCLK:     500Mhz       1700Mhz\n";
  const auto range = ParseOverdriveRange(text, ClockDomain::kGraphics).value();
  EXPECT_EQ(range.min, 500_MHz);
  EXPECT_EQ(range.max, 1700_MHz);
  EXPECT_EQ(ParseOverdriveRange(text, ClockDomain::kMemory).error().code, ErrorCode::kNotSupported);
  EXPECT_FALSE(ParseOverdriveRange("SCLK: 500Mhz 1700Mhz", ClockDomain::kGraphics).ok());
  EXPECT_FALSE(ParseOverdriveRange("OD_RANGE:\nSCLK: 1700Mhz 500Mhz", ClockDomain::kGraphics).ok());
}

TEST(AmdgpuSysfsTest, UnpacksPciAddresses) {
  EXPECT_EQ(PciAddress(0, 0xc100), "0000:c1:00.0");
  EXPECT_EQ(PciAddress(0x10001, (0x3bU << 8U) | (0x1fU << 3U) | 7U), "10001:3b:1f.7");
}

using ::zeus::testing::GpuMetricsFile;

struct Version {
  unsigned format;
  unsigned content;
};

// The offsets are spelled out here on purpose: the builder of the fixtures must not share a
// mistake with the parser.
std::string Raw(Version version, std::size_t size) {
  std::string bytes(size, '\0');
  bytes[0] = static_cast<char>(size & 0xffU);
  bytes[1] = static_cast<char>(size >> 8U);
  bytes[2] = static_cast<char>(version.format);
  bytes[3] = static_cast<char>(version.content);
  return bytes;
}

TEST(GpuMetricsTest, Versions11To13HaveAveragePower) {
  for (const unsigned content : {1U, 2U, 3U}) {
    std::string bytes = Raw({1, content}, 120);
    bytes[22] = 44;  // 300 W
    bytes[23] = 1;
    bytes[24] = 0x10;
    bytes[31] = 0x01;
    const auto metrics = ParseGpuMetrics(bytes);
    ASSERT_TRUE(metrics.ok()) << metrics.error().message;
    EXPECT_EQ(metrics.value().average_power, Watts(300));
    EXPECT_FALSE(metrics.value().current_power);
    EXPECT_EQ(metrics.value().energy_accumulator, 0x0100000000000010U);
  }
}

TEST(GpuMetricsTest, Version14HasCurrentPower) {
  std::string bytes = Raw({1, 4}, 264);
  bytes[10] = 100;
  bytes[24] = 7;
  const auto metrics = ParseGpuMetrics(bytes).value();
  EXPECT_EQ(metrics.current_power, Watts(100));
  EXPECT_FALSE(metrics.average_power);
  EXPECT_EQ(metrics.energy_accumulator, 7U);
}

TEST(GpuMetricsTest, Versions15And16MovedTheAccumulator) {
  for (const unsigned content : {5U, 6U}) {
    std::string bytes = Raw({1, content}, 300);
    bytes[10] = 100;
    bytes[24] = 7;
    bytes[88] = 9;
    const auto metrics = ParseGpuMetrics(bytes).value();
    EXPECT_EQ(metrics.current_power, Watts(100));
    EXPECT_EQ(metrics.energy_accumulator, 9U);
  }
}

TEST(GpuMetricsTest, AllOnesMeanNotAvailable) {
  const auto metrics =
      ParseGpuMetrics(GpuMetricsFile{.energy = std::numeric_limits<std::uint64_t>::max(),
                                     .watts = std::numeric_limits<std::uint16_t>::max()}
                          .Bytes());
  ASSERT_TRUE(metrics.ok());
  EXPECT_FALSE(metrics.value().energy_accumulator);
  EXPECT_FALSE(metrics.value().average_power);
  EXPECT_FALSE(metrics.value().current_power);
}

TEST(GpuMetricsTest, LayoutsWithoutAnAccumulatorAreRecognised) {
  for (const Version version : {Version{1, 0}, Version{2, 0}, Version{2, 4}}) {
    const auto metrics = ParseGpuMetrics(Raw(version, 264));
    ASSERT_FALSE(metrics.ok());
    EXPECT_EQ(metrics.error().code, ErrorCode::kNotSupported);
    EXPECT_NE(metrics.error().message.find("has no energy accumulator"), std::string::npos);
  }
}

TEST(GpuMetricsTest, UnknownVersionsAreNamed) {
  for (const Version version : {Version{1, 7}, Version{3, 0}, Version{0, 0}, Version{255, 255}}) {
    const auto metrics = ParseGpuMetrics(Raw(version, 264));
    ASSERT_FALSE(metrics.ok());
    EXPECT_EQ(metrics.error().code, ErrorCode::kNotSupported);
  }
  EXPECT_EQ(ParseGpuMetrics(Raw({1, 7}, 264)).error().message,
            "gpu_metrics v1.7 is not known to this version");
}

TEST(GpuMetricsTest, ContentThatContradictsItsHeaderIsRefused) {
  EXPECT_EQ(ParseGpuMetrics("").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(ParseGpuMetrics("abc").error().code, ErrorCode::kUnavailable);
  const std::string good = GpuMetricsFile{}.Bytes();
  ASSERT_TRUE(ParseGpuMetrics(good).ok());
  const auto truncated = ParseGpuMetrics(good.substr(0, 100));
  EXPECT_EQ(truncated.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(truncated.error().message,
            "gpu_metrics v1.3 has 100 bytes, its header says 264, at least 40 are needed");
  EXPECT_FALSE(ParseGpuMetrics(good + "x").ok());
  EXPECT_FALSE(ParseGpuMetrics(Raw({1, 3}, 39)).ok());
  EXPECT_TRUE(ParseGpuMetrics(Raw({1, 3}, 40)).ok());
  EXPECT_FALSE(ParseGpuMetrics(Raw({1, 5}, 103)).ok());
  EXPECT_TRUE(ParseGpuMetrics(Raw({1, 5}, 104)).ok());
}

using ::testing::HasSubstr;

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
