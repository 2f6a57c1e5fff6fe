#include "zeus/device/rapl/rapl_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zeus::rapl {
namespace rapl_text_test {

TEST(RaplTextTest, EventConfigsAreHexadecimal) {
  EXPECT_EQ(ParseEventConfig("event=0x02").value(), 2U);
  EXPECT_EQ(ParseEventConfig("event=0x1f").value(), 31U);
  for (const char* wrong : {"", "event=", "event=0x", "event=2", "0x02", "event=0x02,umask=0x1"})
    EXPECT_FALSE(ParseEventConfig(wrong).ok()) << wrong;
}

TEST(RaplTextTest, ScalesArePositiveFractionsOfAJoule) {
  EXPECT_EQ(ParseEventScale("2.3283064365386962890625e-10").value(), 1.0 / 4294967296.0);
  for (const char* wrong : {"", "0", "-1e-10", "nan", "inf", "2", "1e-10 J"})
    EXPECT_FALSE(ParseEventScale(wrong).ok()) << wrong;
}

TEST(RaplTextTest, CpuListsAreRangesAndSingles) {
  EXPECT_EQ(ParseCpuList("0").value(), (std::vector{0}));
  EXPECT_EQ(ParseCpuList("0,24").value(), (std::vector{0, 24}));
  EXPECT_EQ(ParseCpuList("8,0-3,2").value(), (std::vector{0, 1, 2, 3, 8}));
  for (const char* wrong : {"", ",", "0,,1", "3-1", "-1", "a", "0-99999999999", "65536"})
    EXPECT_FALSE(ParseCpuList(wrong).ok()) << wrong;
}

TEST(RaplTextTest, AListThatRepeatsItselfCannotFillTheMemory) {
  std::string list = "0-65535";
  for (int times = 0; times < 100; ++times) list += ",0-65535";
  EXPECT_FALSE(ParseCpuList(list).ok());
}

TEST(RaplTextTest, ZoneNumbersAreHexadecimal) {
  EXPECT_EQ(ParseZoneId("intel-rapl:a").value(),
            (ZoneId{.control_type = "intel-rapl", .path = {10}}));
  EXPECT_EQ(ParseZoneId("intel-rapl-mmio:0:1f").value(),
            (ZoneId{.control_type = "intel-rapl-mmio", .path = {0, 31}}));
  for (const char* wrong : {"", "intel-rapl", "intel-rapl:", "intel-rapl:g", "intel-rapl:0::1"})
    EXPECT_FALSE(ParseZoneId(wrong).ok()) << wrong;
}

TEST(RaplTextTest, ZoneNamesTellDomainPackageAndDie) {
  const auto package = ParseZoneName("package-3-die-1").value();
  EXPECT_EQ(package.domain, Domain::kPackage);
  EXPECT_EQ(package.package, 3);
  EXPECT_EQ(package.die, 1);
  EXPECT_EQ(ParseZoneName("package-10").value().package, 10);
  EXPECT_EQ(ParseZoneName("dram").value().domain, Domain::kDram);
  EXPECT_EQ(ParseZoneName("psys").value().domain, Domain::kPsys);
  for (const char* wrong : {"", "package-", "package-x", "package-0-die-", "gpu"})
    EXPECT_FALSE(ParseZoneName(wrong).ok()) << wrong;
}

TEST(RaplTextTest, CpuInfoNamesTheModelOfEveryPackage) {
  const CpuInfo info = ParseCpuInfo(
      "vendor_id\t: GenuineIntel\nmodel name\t: Xeon A\nphysical id\t: 0\nflags\t\t: fpu sse\n\n"
      "vendor_id\t: GenuineIntel\nmodel name\t: Xeon B\nphysical id\t: 1\nflags\t\t: fpu sse\n");
  EXPECT_EQ(info.vendor, "GenuineIntel");
  EXPECT_EQ(info.model_of_package.at(0), "Xeon A");
  EXPECT_EQ(info.model_of_package.at(1), "Xeon B");
  EXPECT_FALSE(info.virtual_machine);
}

TEST(RaplTextTest, AHypervisorFlagMeansAVirtualMachine) {
  EXPECT_TRUE(ParseCpuInfo("flags\t\t: fpu hypervisor sse\n").virtual_machine);
  EXPECT_FALSE(ParseCpuInfo("flags\t\t: fpu hypervisors\n").virtual_machine);
}

TEST(RaplTextTest, CpuInfoOfAnotherArchitectureOrOfGarbageIsEmpty) {
  const CpuInfo arm = ParseCpuInfo("processor\t: 0\nCPU implementer\t: 0x41\n");
  EXPECT_TRUE(arm.vendor.empty());
  EXPECT_TRUE(arm.model_of_package.empty());
  const CpuInfo garbage = ParseCpuInfo(std::string("\0\xff:\x01\nmodel name\t: \x1b[2J\n", 24));
  EXPECT_TRUE(garbage.model_of_package.empty());
}

}  // namespace rapl_text_test
}  // namespace zeus::rapl
