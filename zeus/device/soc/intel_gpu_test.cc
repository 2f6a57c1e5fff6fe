#include "zeus/device/soc/intel_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "zeus/device/soc/soc_discovery.h"
#include "zeus/device/soc/testing/soc_tree.h"

namespace zeus::soc {
namespace intel_gpu_test {

using namespace zeus::literals;
using ::testing::HasSubstr;

class IntelGpuTest : public ::testing::Test {
 protected:
  IntelGpuTest() {
    tree_.AddCard(1, "0000:03:00.0");
    tree_.AddCardHwmon(1, "name", "i915");
    tree_.AddCardHwmon(1, "energy1_input", "5000000");
    tree_.AddCardHwmon(1, "power1_max", "190000000");
    tree_.AddCardHwmon(1, "power1_rated_max", "225000000");
  }

  Findings Find() {
    Findings findings;
    FindIntelGpus(tree_.surroundings(), findings);
    return findings;
  }

  testing::SocTree tree_;
};

TEST_F(IntelGpuTest, IsIdentifiedByItsPciAddress) {
  const Findings found = Find();
  ASSERT_EQ(found.gpus.size(), 1U);
  EXPECT_EQ(found.gpus[0]->name(), "gpu:0");
  const GpuIdentity& identity = found.gpus[0]->identity();
  EXPECT_EQ(identity.vendor, Vendor::kIntel);
  EXPECT_EQ(identity.pci_address, "0000:03:00.0");
  EXPECT_EQ(identity.model, "Intel GPU 8086:56a0");
}

TEST_F(IntelGpuTest, CountsMicrojoules) {
  const Findings found = Find();
  EXPECT_EQ(found.gpus.at(0)->TotalEnergy().value(), 5_J);
  tree_.AddCardHwmon(1, "energy1_input", "7500000");
  EXPECT_EQ(found.gpus.at(0)->TotalEnergy().value(), Joules(7.5));
  EXPECT_NEAR(found.gpus.at(0)->LongestReadInterval()->count(), 131.0, 0.1);
}

TEST_F(IntelGpuTest, ACounterThatGoesBackStartsANewEpoch) {
  const Findings found = Find();
  tree_.AddCardHwmon(1, "energy1_input", "1000000");
  const auto reading = found.gpus.at(0)->Energy().value();
  EXPECT_EQ(reading.epoch, 1U);
  EXPECT_EQ(reading.total, 6_J);
}

TEST_F(IntelGpuTest, ReadsAndSetsTheSustainedLimit) {
  const Findings found = Find();
  const auto before = found.gpus.at(0)->CurrentPowerLimit().value();
  EXPECT_EQ(before.requested, 190_W);
  EXPECT_EQ(before.range.max, 225_W);
  EXPECT_EQ(found.gpus.at(0)->SetPowerLimitWithoutJournal(150_W).value().enforced, 150_W);
  EXPECT_EQ(found.gpus.at(0)->Read().enforced_limit.value(), 150_W);
}

TEST_F(IntelGpuTest, TheSecondChannelServesWhereThereIsNoFirst) {
  tree_.Remove("sys/class/drm/card1/device/hwmon");
  tree_.AddCardHwmon(1, "name", "xe");
  tree_.AddCardHwmon(1, "energy2_input", "3000000");
  tree_.AddCardHwmon(1, "power2_max", "100000000");
  tree_.AddCardHwmon(1, "temp2_input", "45500");
  const Findings found = Find();
  EXPECT_EQ(found.gpus.at(0)->TotalEnergy().value(), 3_J);
  EXPECT_EQ(found.gpus.at(0)->CurrentPowerLimit().value().requested, 100_W);
  EXPECT_EQ(found.gpus.at(0)->Temperature().value(), Celsius(45.5));
}

TEST_F(IntelGpuTest, WhatItCannotDoHasAReasonThatNamesTheDriver) {
  const Findings found = Find();
  const auto power = found.gpus.at(0)->Power();
  ASSERT_FALSE(power.ok());
  EXPECT_EQ(power.error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(power.error().message, HasSubstr("gpu:0: hwmon of the i915 driver"));
  EXPECT_EQ(found.gpus[0]->LockClockWithoutJournal(ClockDomain::kGraphics, {}).error().code,
            ErrorCode::kNotSupported);
  EXPECT_EQ(found.gpus[0]->Temperature().error().code, ErrorCode::kNotSupported);
}

TEST_F(IntelGpuTest, WithoutALimitAttributeThereIsAReason) {
  tree_.Remove("sys/class/drm/card1/device/hwmon/hwmon4/power1_max");
  const Findings found = Find();
  EXPECT_EQ(found.gpus.at(0)->SetPowerLimitWithoutJournal(100_W).error().code,
            ErrorCode::kNotSupported);
}

TEST_F(IntelGpuTest, CardsComeInPciOrderAndConnectorsAreNoCards) {
  tree_.AddCard(0, "0000:83:00.0");
  tree_.AddCardHwmon(0, "name", "i915");
  tree_.AddCardHwmon(0, "energy1_input", "1");
  tree_.Add("sys/class/drm/card1-DP-1/device/vendor", "0x8086\n");
  const Findings found = Find();
  ASSERT_EQ(found.gpus.size(), 2U);
  EXPECT_EQ(found.gpus[0]->identity().pci_address, "0000:03:00.0");
  EXPECT_EQ(found.gpus[1]->name(), "gpu:1");
  EXPECT_TRUE(found.absent.empty());
}

TEST_F(IntelGpuTest, CountsFromTheFirstIndex) {
  Surroundings surroundings = tree_.surroundings();
  surroundings.first_gpu_index = 3;
  EXPECT_EQ(DiscoverSoc(surroundings).value().gpus.at(0)->name(), "gpu:3");
}

TEST_F(IntelGpuTest, AnIntegratedGpuIsAbsentWithTheReason) {
  tree_.AddCard(0, "0000:00:02.0");
  const Findings found = Find();
  EXPECT_EQ(found.gpus.size(), 1U);
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_EQ(found.absent[0].what, "Intel GPU 0000:00:02.0");
  EXPECT_THAT(found.absent[0].reason, HasSubstr("part of the CPU package"));
}

TEST_F(IntelGpuTest, CardsOfOtherVendorsAreLeftAlone) {
  tree_.AddCardFile(1, "vendor", "0x1002");
  const Findings found = Find();
  EXPECT_TRUE(found.gpus.empty());
  EXPECT_TRUE(found.absent.empty());
}

TEST_F(IntelGpuTest, BadFilesAreAReason) {
  for (const auto& content :
       {std::string(), std::string(1 << 20, '1'), std::string("\0\xff", 2), std::string("-1")}) {
    tree_.AddCardHwmon(1, "energy1_input", content);
    const Findings found = Find();
    EXPECT_TRUE(found.gpus.empty());
    EXPECT_THAT(found.absent.at(0).reason, HasSubstr("energy1_input"));
  }
}

TEST_F(IntelGpuTest, ACardWithoutAnAddressIsAReason) {
  tree_.AddCardFile(1, "uevent", std::string("\0\xff\n", 3));
  const Findings found = Find();
  EXPECT_TRUE(found.gpus.empty());
  EXPECT_THAT(found.absent.at(0).reason, HasSubstr("PCI_SLOT_NAME"));
}

}  // namespace intel_gpu_test
}  // namespace zeus::soc
