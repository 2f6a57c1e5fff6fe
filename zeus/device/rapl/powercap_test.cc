#include "zeus/device/rapl/powercap.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "zeus/device/rapl/testing/rapl_tree.h"

namespace zeus::rapl {
namespace powercap_test {

using namespace zeus::literals;
using testing::RaplTree;

class PowercapTest : public ::testing::Test {
 protected:
  std::map<int, PowercapPackage> Scan() {
    return ScanPowercap(tree_.sysfs(), ReadCpuTopology(tree_.sysfs(), tree_.surroundings().procfs));
  }
  std::filesystem::path Zone(const std::string& id) {
    return tree_.sysfs() / "class/powercap" / id;
  }

  RaplTree tree_;
};

TEST_F(PowercapTest, FindsEveryPackageWithItsMemory) {
  tree_.AddZone("intel-rapl:0", "package-0");
  tree_.AddZone("intel-rapl:0:0", "core");
  tree_.AddZone("intel-rapl:0:1", "dram");
  tree_.AddZone("intel-rapl:1", "package-1");
  tree_.AddZone("intel-rapl:1:0", "dram");
  tree_.AddAttribute("intel-rapl", "enabled", "1");  // The control type itself.
  const auto packages = Scan();
  ASSERT_EQ(packages.size(), 2U);
  EXPECT_EQ(packages.at(0).package, std::vector{Zone("intel-rapl:0")});
  EXPECT_EQ(packages.at(0).memory, std::vector{Zone("intel-rapl:0:1")});
  EXPECT_EQ(packages.at(1).memory, std::vector{Zone("intel-rapl:1:0")});
}

TEST_F(PowercapTest, PlatformAndMemoryMappedZonesAreNotPackages) {
  tree_.AddZone("intel-rapl:0", "package-0");
  tree_.AddZone("intel-rapl:1", "psys");
  tree_.AddZone("intel-rapl-mmio:0", "package-0");
  tree_.AddZone("intel-rapl-mmio:1", "package-1");
  const auto packages = Scan();
  ASSERT_EQ(packages.size(), 1U);
  EXPECT_EQ(packages.at(0).package, std::vector{Zone("intel-rapl:0")});
}

TEST_F(PowercapTest, ZoneIdsBeyondNineAreFound) {
  for (int package = 0; package < 12; ++package) {
    tree_.AddZone(fmt::format("intel-rapl:{:x}", package), fmt::format("package-{}", package));
    tree_.AddZone(fmt::format("intel-rapl:{:x}:a", package), "dram");
  }
  const auto packages = Scan();
  ASSERT_EQ(packages.size(), 12U);
  EXPECT_EQ(packages.at(10).package, std::vector{Zone("intel-rapl:a")});
  EXPECT_EQ(packages.at(11).memory, std::vector{Zone("intel-rapl:b:a")});
}

TEST_F(PowercapTest, TheDiesOfAnIntelPackageAreSummed) {
  tree_.AddCpu(0, 0);
  tree_.AddZone("intel-rapl:0", "package-0-die-0", 10);
  tree_.AddZone("intel-rapl:1", "package-0-die-1", 20);
  EXPECT_EQ(Scan().at(0).package.size(), 2U);
}

TEST_F(PowercapTest, TheDiesOfAnAmdPackageShowOneCounterTwice) {
  tree_.SetVendor("AuthenticAMD", "AMD EPYC 9654");
  tree_.AddCpu(0, 0);
  tree_.AddZone("intel-rapl:0", "package-0-die-0");
  tree_.AddZone("intel-rapl:1", "package-0-die-1");
  tree_.AddZone("intel-rapl:2", "package-0");
  EXPECT_EQ(Scan().at(0).package, std::vector{Zone("intel-rapl:0")});
}

TEST_F(PowercapTest, APackageTheMachineDoesNotHaveIsADuplicate) {
  tree_.SetVendor("AuthenticAMD", "AMD Ryzen Threadripper 1950X");
  tree_.AddCpu(0, 0);
  tree_.AddZone("intel-rapl:0", "package-0");
  tree_.AddZone("intel-rapl:1", "package-1");
  EXPECT_EQ(Scan().size(), 1U);
}

TEST_F(PowercapTest, ZonesWithBadNamesAreLeftOut) {
  tree_.AddZone("intel-rapl:0", "package-0");
  tree_.AddZone("intel-rapl:1", "");
  tree_.AddZone("intel-rapl:2", std::string("\0\xff", 2));
  tree_.AddZone("intel-rapl:3", std::string(1 << 20, 'p'));
  EXPECT_EQ(Scan().size(), 1U);
}

TEST_F(PowercapTest, WrapAroundIsExactToTheMicrojoule) {
  tree_.AddZone("intel-rapl:0", "package-0", RaplTree::kLargest - 10);
  auto counter = PowercapCounter::Open({Zone("intel-rapl:0")}, std::nullopt);
  ASSERT_TRUE(counter.ok()) << counter.error().message;
  const auto before = counter.value()->Read().value();
  tree_.SetEnergy("intel-rapl:0", 5);
  const auto after = counter.value()->Read().value();
  // 10 up to the largest value, 1 to zero, 5 more. A double of this size resolves 3e-11 J.
  EXPECT_NEAR((after.total - before.total).ToMicro(), 16.0, 1e-3);
  EXPECT_EQ(after.epoch, before.epoch);
}

TEST_F(PowercapTest, TheLongestIntervalIsHalfATurnAtTheRatedPower) {
  tree_.AddZone("intel-rapl:0", "package-0", 0, 65'532'610'987);
  const auto rated = PowercapCounter::Open({Zone("intel-rapl:0")}, 125_W);
  EXPECT_NEAR(rated.value()->LongestReadInterval()->count(), 262.13, 0.01);
  const auto unknown = PowercapCounter::Open({Zone("intel-rapl:0")}, std::nullopt);
  EXPECT_NEAR(unknown.value()->LongestReadInterval()->count(), 32.77, 0.01);
}

TEST_F(PowercapTest, BadEnergyFilesAreErrors) {
  tree_.AddZone("intel-rapl:0", "package-0");
  for (const auto& content : {std::string(), std::string(1 << 20, '1'), std::string("\0\xff", 2),
                              std::string("-5"), std::to_string(RaplTree::kLargest + 1)}) {
    tree_.AddAttribute("intel-rapl:0", "energy_uj", content);
    const auto counter = PowercapCounter::Open({Zone("intel-rapl:0")}, std::nullopt);
    ASSERT_FALSE(counter.ok());
    EXPECT_NE(counter.error().message.find("energy_uj"), std::string::npos);
  }
}

TEST_F(PowercapTest, ACounterOfUnknownRangeIsRefused) {
  for (const std::uint64_t largest :
       {std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()}) {
    tree_.AddZone("intel-rapl:0", "package-0", 0, largest);
    EXPECT_EQ(PowercapCounter::Open({Zone("intel-rapl:0")}, std::nullopt).error().code,
              ErrorCode::kNotSupported);
  }
}

TEST_F(PowercapTest, TheLimitIsTheLongTermConstraintWhereverItStands) {
  tree_.AddZone("intel-rapl:0", "package-0");
  tree_.AddAttribute("intel-rapl:0", "constraint_0_name", "peak_power");
  tree_.AddAttribute("intel-rapl:0", "constraint_1_name", "long_term");
  tree_.AddAttribute("intel-rapl:0", "constraint_1_power_limit_uw", "125000000");
  tree_.AddAttribute("intel-rapl:0", "constraint_1_max_power_uw", "150000000");
  const auto limit = OpenLongTermLimit(Scan().at(0));
  ASSERT_TRUE(limit.ok()) << limit.error().message;
  EXPECT_EQ(limit.value().Current().value().requested, 125_W);
  EXPECT_EQ(RatedPower(Zone("intel-rapl:0")), 150_W);
}

TEST_F(PowercapTest, WithoutConstraintsThereIsAReason) {
  tree_.AddZone("intel-rapl:0", "package-0");
  const auto limit = OpenLongTermLimit(Scan().at(0));
  EXPECT_EQ(limit.error().code, ErrorCode::kNotSupported);
  EXPECT_FALSE(RatedPower(Zone("intel-rapl:0")).has_value());
}

}  // namespace powercap_test
}  // namespace zeus::rapl
