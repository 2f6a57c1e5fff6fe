#include "zeus/device/soc/soc_discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>

#include "zeus/base/testing/unprivileged.h"
#include "zeus/device/soc/intel_gpu.h"
#include "zeus/device/soc/testing/soc_tree.h"
#include "zeus/device/testing/cpu_conformance.h"
#include "zeus/device/testing/gpu_conformance.h"

namespace zeus::soc {
namespace soc_discovery_test {

TEST(SocTextTest, UeventsAreKeysAndValues) {
  const auto uevent = ParseUevent("DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\nMODALIAS=a=b");
  EXPECT_EQ(uevent.at("DRIVER"), "xe");
  EXPECT_EQ(uevent.at("PCI_SLOT_NAME"), "0000:03:00.0");
  EXPECT_EQ(uevent.at("MODALIAS"), "a=b");
}

TEST(SocTextTest, UeventLinesThatAreNotTextAreLeftOut) {
  EXPECT_TRUE(ParseUevent("").empty());
  EXPECT_TRUE(ParseUevent("no equals sign\n\n").empty());
  EXPECT_TRUE(ParseUevent(std::string("A=\0B\nC=\x1b[2J\n", 12)).empty());
}

TEST(SocTextTest, GraceSensorsAreNamedWithTheirSocket) {
  EXPECT_EQ(ParseGraceSensorName("CPU Power Socket 1").value(),
            (GraceSensorName{.sensor = GraceSensor::kCpu, .socket = 1}));
  EXPECT_EQ(ParseGraceSensorName("Module Power Socket 0").value().sensor, GraceSensor::kModule);
  EXPECT_EQ(ParseGraceSensorName("Grace Power Socket 0").value().sensor, GraceSensor::kGrace);
  EXPECT_EQ(ParseGraceSensorName("SysIO Power Socket 0").value().sensor, GraceSensor::kSysIo);
  for (const char* wrong : {"", "CPU Power Socket ", "CPU Power Socket x", "Fan Power Socket 0",
                            "CPU Power Socket 99999999999999999999", "CPU Power Socket 1024"})
    EXPECT_FALSE(ParseGraceSensorName(wrong).ok()) << wrong;
}

TEST(SocTextTest, TheInputOfTheBoardIsItsTotal) {
  EXPECT_EQ(RailRole("VDD_IN"), PowerRail::Role::kTotal);
  EXPECT_EQ(RailRole("POM_5V_IN"), PowerRail::Role::kTotal);
  EXPECT_EQ(RailRole("VDD_CPU_GPU_CV"), PowerRail::Role::kPart);
  EXPECT_FALSE(RailRole("sum of shunt voltages").has_value());
  EXPECT_FALSE(RailRole("NC").has_value());
  EXPECT_FALSE(RailRole("").has_value());
}

using namespace zeus::literals;
using ::testing::HasSubstr;

class SocDiscoveryTest : public ::testing::Test {
 protected:
  Findings Discover() { return DiscoverSoc(tree_.surroundings()).value(); }

  testing::SocTree tree_;
};

TEST_F(SocDiscoveryTest, AnOrdinaryMachineHasNothingAndLacksNothing) {
  tree_.AddPowerMeter("hwmon0", "ACME chassis", "300000000");
  const Findings found = Discover();
  EXPECT_TRUE(found.rails.empty());
  EXPECT_TRUE(found.cpus.empty());
  EXPECT_TRUE(found.gpus.empty());
  EXPECT_TRUE(found.absent.empty());
}

TEST_F(SocDiscoveryTest, JetsonRailsAreVoltageTimesCurrent) {
  tree_.AddHwmonRail("1-0040", 1, "VDD_IN", 5000, 1200);
  tree_.AddHwmonRail("1-0040", 2, "VDD_CPU_GPU_CV", 4950, 400);
  tree_.AddHwmonRail("1-0040", 7, "sum of shunt voltages", 3, 9000);
  const Findings found = Discover();
  ASSERT_EQ(found.rails.size(), 2U);
  EXPECT_EQ(found.rails[0]->name(), "rail:VDD_IN");
  EXPECT_EQ(found.rails[0]->role(), PowerRail::Role::kTotal);
  EXPECT_DOUBLE_EQ(found.rails[0]->Power().value().value(), 6.0);
  EXPECT_EQ(found.rails[1]->name(), "rail:VDD_CPU_GPU_CV");
  EXPECT_EQ(found.rails[1]->role(), PowerRail::Role::kPart);
  EXPECT_DOUBLE_EQ(found.rails[1]->Power().value().value(), 1.98);
  EXPECT_EQ(found.rails[0]->Energy().error().code, ErrorCode::kNotSupported);
}

TEST_F(SocDiscoveryTest, JetsonRailsOfTheOlderDriverAreMilliwatts) {
  tree_.AddIioRail("6-0040", 0, "POM_5V_IN", 4200);
  tree_.AddIioRail("6-0040", 1, "POM_5V_GPU", 800);
  tree_.AddIioRail("6-0040", 2, "NC", 0);
  const Findings found = Discover();
  ASSERT_EQ(found.rails.size(), 2U);
  EXPECT_EQ(found.rails[0]->role(), PowerRail::Role::kTotal);
  EXPECT_DOUBLE_EQ(found.rails[0]->Power().value().value(), 4.2);
}

TEST_F(SocDiscoveryTest, RailsOfOneLabelOnTwoChipsAreToldApart) {
  tree_.AddHwmonRail("1-0040", 1, "VDD_SOC", 5000, 100);
  tree_.AddHwmonRail("1-0041", 1, "VDD_SOC", 5000, 200);
  const Findings found = Discover();
  ASSERT_EQ(found.rails.size(), 2U);
  EXPECT_EQ(found.rails[0]->name(), "rail:VDD_SOC");
  EXPECT_EQ(found.rails[1]->name(), "rail:VDD_SOC@1-0041");
}

TEST_F(SocDiscoveryTest, ADisabledChannelIsNoRail) {
  tree_.AddHwmonRail("1-0040", 3, "VDD_SOC", 5000, 100);
  tree_.Add("sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3/in3_enable", "0\n");
  EXPECT_TRUE(Discover().rails.empty());
}

TEST_F(SocDiscoveryTest, BadRailFilesAreAReasonAndLaterAnError) {
  const std::string current = "sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3/curr1_input";
  for (const auto& content :
       {std::string(), std::string(1 << 20, '1'), std::string("\0\xff", 2), std::string("1e9")}) {
    tree_.AddHwmonRail("1-0040", 1, "VDD_IN", 5000, 1200);
    const Findings working = Discover();
    tree_.Add(current, content);
    EXPECT_FALSE(working.rails.at(0)->Power().ok());
    const Findings broken = Discover();
    EXPECT_TRUE(broken.rails.empty());
    ASSERT_EQ(broken.absent.size(), 1U);
    EXPECT_EQ(broken.absent[0].what, "rail:VDD_IN");
    EXPECT_THAT(broken.absent[0].reason, HasSubstr("curr1_input"));
  }
}

TEST_F(SocDiscoveryTest, AnUnreadableRailIsAReason) {
  tree_.AddHwmonRail("1-0040", 1, "VDD_IN", 5000, 1200);
  ::chmod(tree_.Add("sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3/in1_input", "1").c_str(), 0);
  ::chmod(tree_.root().c_str(), 0755);
  const zeus::testing::Unprivileged nobody;
  if (!nobody.effective()) GTEST_SKIP() << "this user reads everything and cannot become another";
  const Findings found = Discover();
  EXPECT_TRUE(found.rails.empty());
  EXPECT_THAT(found.absent.at(0).reason, HasSubstr("Permission denied"));
}

TEST_F(SocDiscoveryTest, AJetsonWithoutItsMonitorSaysSo) {
  tree_.Add("sys/firmware/devicetree/base/model", std::string("NVIDIA Jetson Orin Nano\0", 24));
  const Findings found = Discover();
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_EQ(found.absent[0].fix, "sudo modprobe ina3221");
}

TEST_F(SocDiscoveryTest, AGraceHasACpuItsMemoryAndTheModule) {
  tree_.AddPowerMeter("hwmon1", "Module Power Socket 0", "500000000");
  tree_.AddPowerMeter("hwmon2", "Grace Power Socket 0", "200000000");
  tree_.AddPowerMeter("hwmon3/device", "CPU Power Socket 0", "120000000");
  tree_.AddPowerMeter("hwmon4", "SysIO Power Socket 0", "30000000");
  const Findings found = Discover();
  EXPECT_TRUE(found.absent.empty());
  ASSERT_EQ(found.cpus.size(), 1U);
  EXPECT_EQ(found.cpus[0]->name(), "cpu:0");
  EXPECT_EQ(found.cpus[0]->Power().value(), 120_W);
  ASSERT_NE(found.cpus[0]->dram(), nullptr);
  EXPECT_EQ(found.cpus[0]->dram()->name(), "dram:0");
  EXPECT_EQ(found.cpus[0]->dram()->Power().value(), 50_W);
  ASSERT_EQ(found.rails.size(), 2U);
  EXPECT_EQ(found.rails[0]->name(), "rail:module:0");
  EXPECT_EQ(found.rails[0]->role(), PowerRail::Role::kTotal);
  EXPECT_EQ(found.rails[1]->name(), "rail:sysio:0");
  EXPECT_EQ(found.rails[1]->role(), PowerRail::Role::kPart);
}

TEST_F(SocDiscoveryTest, PartsThatExceedTheWholeAreNotNegativeMemory) {
  tree_.AddPowerMeter("hwmon2", "Grace Power Socket 0", "100000000");
  tree_.AddPowerMeter("hwmon3", "CPU Power Socket 0", "120000000");
  tree_.AddPowerMeter("hwmon4", "SysIO Power Socket 0", "30000000");
  EXPECT_EQ(Discover().cpus.at(0)->dram()->Power().error().code, ErrorCode::kUnavailable);
}

TEST_F(SocDiscoveryTest, WithoutAllPartsTheMemoryIsUnknown) {
  tree_.AddPowerMeter("hwmon3", "CPU Power Socket 0", "120000000");
  EXPECT_EQ(Discover().cpus.at(0)->dram(), nullptr);
}

TEST_F(SocDiscoveryTest, AGraceMeterThatCannotBeReadIsAReason) {
  tree_.AddPowerMeter("hwmon3", "CPU Power Socket 0", "");
  const Findings found = Discover();
  EXPECT_TRUE(found.cpus.empty());
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_EQ(found.absent[0].what, "CPU Power Socket 0");
}

TEST_F(SocDiscoveryTest, AGraceWithoutMetersSaysHowToGetThem) {
  tree_.Add("proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd4f\n");
  const Findings found = Discover();
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_THAT(found.absent[0].fix, HasSubstr("modprobe acpi_power_meter force_cap_on=y"));
}

}  // namespace soc_discovery_test
}  // namespace zeus::soc

namespace zeus::testing {
namespace soc_discovery_test {

// A Grace module, which has power meters only.
class GraceHarness final : public CpuHarness {
 public:
  GraceHarness() {
    tree_.AddPowerMeter("hwmon2", "Grace Power Socket 1", "200000000");
    tree_.AddPowerMeter("hwmon3", "CPU Power Socket 1", "120000000");
    tree_.AddPowerMeter("hwmon4", "SysIO Power Socket 1", "30000000");
    found_ = DiscoverSoc(tree_.surroundings()).value();
  }
  CpuPackage& package() override { return *found_.cpus.at(0); }
  void Use(Joules /*energy*/) override {}
  void UseDram(Joules /*energy*/) override {}
  void Break() override { tree_.AddPowerMeter("hwmon3", "CPU Power Socket 1", ""); }

 private:
  soc::testing::SocTree tree_;
  Findings found_;
};

class IntelGpuFactory {
 public:
  std::unique_ptr<Gpu> Make() {
    tree_.AddCard(0, "0000:3B:00.0");
    tree_.AddCardHwmon(0, "name", "i915");
    tree_.AddCardHwmon(0, "energy1_input", std::to_string(microjoules_));
    tree_.AddCardHwmon(0, "power1_max", "190000000");
    tree_.AddCardHwmon(0, "power1_rated_max", "225000000");
    tree_.AddCardHwmon(0, "temp1_input", "51000");
    Findings findings;
    soc::FindIntelGpus(tree_.surroundings(), findings);
    return std::move(findings.gpus.at(0));
  }
  void Advance(Seconds by) {
    microjoules_ += static_cast<std::uint64_t>((Watts(100) * by).ToMicro());
    tree_.AddCardHwmon(0, "energy1_input", std::to_string(microjoules_));
  }

 private:
  soc::testing::SocTree tree_;
  std::uint64_t microjoules_ = 1'000'000;
};

INSTANTIATE_TEST_SUITE_P(Soc, CpuConformance, ::testing::Values(CpuCaseOf<GraceHarness>("Grace")),
                         NameOfCase());
INSTANTIATE_TEST_SUITE_P(Intel, GpuConformance,
                         ::testing::Values(GpuCaseOf<IntelGpuFactory>("Hwmon")), NameOfCase());

}  // namespace soc_discovery_test
}  // namespace zeus::testing
