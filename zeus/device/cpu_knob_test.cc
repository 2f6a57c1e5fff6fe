#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/file.h"
#include "zeus/device/device_knob.h"
#include "zeus/device/rapl/cpu_discovery.h"
#include "zeus/device/rapl/testing/rapl_tree.h"

namespace zeus {
namespace cpu_knob_test {

using namespace zeus::literals;

class CpuKnobTest : public ::testing::Test {
 protected:
  CpuKnobTest() {
    tree_.AddCpu(0, 0);
    tree_.AddZone("intel-rapl:0", "package-0");
    tree_.AddConstraints("intel-rapl:0", 120'000'000, 150'000'000);
    node_ = DiscoverCpus(tree_.surroundings()).value();
  }

  std::uint64_t Microwatts() {
    return ReadUnsigned(tree_.sysfs() / "class/powercap/intel-rapl:0/constraint_0_power_limit_uw")
        .value();
  }

  rapl::testing::RaplTree tree_;
  Node node_;
};

TEST_F(CpuKnobTest, TheLongTermLimitIsSetAndPutBack) {
  ASSERT_EQ(node_.cpus.size(), 1U);
  const auto knob = DeviceKnob::WithoutJournal(*node_.cpus.front()).value();
  EXPECT_EQ(knob->kind(), KnobKind::kCpuPowerLimit);
  EXPECT_EQ(knob->name(), "power limit of cpu:0");
  EXPECT_EQ(knob->max_power(), 150_W);
  ASSERT_TRUE(knob->Set(80_W).ok());
  EXPECT_EQ(Microwatts(), 80'000'000U);
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Microwatts(), 120'000'000U);
}

TEST_F(CpuKnobTest, LimitsThatOnlyStallAreNotTried) {
  const auto knob = DeviceKnob::WithoutJournal(*node_.cpus.front()).value();
  const auto settings = knob->Settings(25_W).value();
  EXPECT_EQ(settings.front(), Setting(120_W));  // As found.
  EXPECT_EQ(settings.back(), Setting(45_W));
}

TEST_F(CpuKnobTest, TheLimitThatWasFoundIsRaisedOnlyWithPermission) {
  const auto knob = DeviceKnob::WithoutJournal(*node_.cpus.front()).value();
  EXPECT_EQ(knob->Set(130_W).error().code, ErrorCode::kConflict);
  EXPECT_EQ(Microwatts(), 120'000'000U);
  const auto free = DeviceKnob::WithoutJournal(*node_.cpus.front(), Ceiling::kOfDevice).value();
  EXPECT_EQ(free->Settings(25_W).value().front(), Setting(150_W));
  ASSERT_TRUE(free->Set(130_W).ok());
  EXPECT_EQ(Microwatts(), 130'000'000U);
}

}  // namespace cpu_knob_test
}  // namespace zeus
