#include "zeus/device/amd/amdgpu_sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/device/amd/testing/amdgpu_tree.h"

namespace zeus::amd {
namespace amdgpu_sysfs_test {

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

}  // namespace amdgpu_sysfs_test
}  // namespace zeus::amd
