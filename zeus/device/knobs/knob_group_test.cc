#include "zeus/device/knobs/knob_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus {
namespace knob_group_test {

using namespace zeus::literals;
using sim::FaultKind;
using ::testing::HasSubstr;

class KnobGroupTest : public ::testing::Test {
 protected:
  sim::SimulatedGpu& Add(const char* model, unsigned index) {
    return gpus_.emplace_back(clock_, sim::testing::Model(model),
                              sim::SimulatedGpu::Options{.index = index});
  }
  std::unique_ptr<KnobGroup> Group(KnobKind kind = KnobKind::kGpuPowerLimit) {
    std::vector<std::unique_ptr<DeviceKnob>> members;
    for (sim::SimulatedGpu& gpu : gpus_)
      members.push_back(DeviceKnob::WithoutJournal(kind, gpu).value());
    return KnobGroup::Of(std::move(members)).value();
  }
  static Watts Requested(sim::SimulatedGpu& gpu) {
    return gpu.CurrentPowerLimit().value().requested;
  }

  VirtualClock clock_;
  std::deque<sim::SimulatedGpu> gpus_;
};

TEST_F(KnobGroupTest, AllDevicesHaveTheSetting) {
  Add("V100", 0);
  Add("V100", 1);
  ASSERT_TRUE(gpus_[1].SetPowerLimitWithoutJournal(225_W).ok());
  const auto group = Group();
  EXPECT_EQ(group->max_power(), 500_W);
  ASSERT_TRUE(group->Set(150_W).ok());
  for (auto& gpu : gpus_) EXPECT_EQ(Requested(gpu), 150_W);
  ASSERT_TRUE(group->Restore().ok());
  EXPECT_EQ(Requested(gpus_[0]), 250_W);
  EXPECT_EQ(Requested(gpus_[1]), 225_W);
}

TEST_F(KnobGroupTest, SettingsAreThoseThatAllCanHave) {
  Add("V100", 0);  // 100 to 250 W
  Add("A100", 1);  // 100 to 400 W
  const auto settings = Group()->Settings(50_W).value();
  EXPECT_EQ(settings.front(), Setting(250_W));
  EXPECT_EQ(settings.back(), Setting(100_W));
  const auto clocks = Group(KnobKind::kGraphicsClock)->Settings(Hertz(0));
  ASSERT_TRUE(clocks.ok());
  for (const Setting& clock : clocks.value()) {
    for (auto& gpu : gpus_) {
      const auto supported = gpu.SupportedClocks(ClockDomain::kGraphics).value();
      EXPECT_THAT(supported, ::testing::Contains(std::get<Hertz>(clock)));
    }
  }
}

TEST_F(KnobGroupTest, WhenOneRefusesAllArePutBack) {
  for (const unsigned index : {0U, 1U, 2U}) Add("V100", index);
  const auto group = Group();
  ASSERT_TRUE(group->Set(200_W).ok());
  ASSERT_TRUE(gpus_[1].InjectFault({.kind = FaultKind::kLost}));
  const Status set = group->Set(150_W);
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message, HasSubstr("power limit of gpu:1"));
  EXPECT_EQ(Requested(gpus_[0]), 250_W);
  EXPECT_EQ(Requested(gpus_[2]), 250_W);
  gpus_[1].ClearFaults();
  EXPECT_TRUE(group->Restore().ok());
  EXPECT_EQ(Requested(gpus_[1]), 250_W);
}

TEST_F(KnobGroupTest, RestoringGoesOnAfterAFailureAndTellsIt) {
  for (const unsigned index : {0U, 1U}) Add("V100", index);
  const auto group = Group();
  ASSERT_TRUE(group->Set(150_W).ok());
  ASSERT_TRUE(gpus_[0].InjectFault({.kind = FaultKind::kLost}));
  EXPECT_THAT(group->Restore().error().message, HasSubstr("gpu:0"));
  EXPECT_EQ(Requested(gpus_[1]), 250_W);
  gpus_[0].ClearFaults();
}

TEST_F(KnobGroupTest, TheNameTellsTheDevices) {
  for (const unsigned index : {0U, 1U, 2U}) Add("V100", index);
  EXPECT_EQ(Group()->name(), "power limit of gpu:0 to gpu:2");
  Add("V100", 5);
  EXPECT_EQ(Group(KnobKind::kGraphicsClock)->name(),
            "graphics clock of gpu:0, gpu:1, gpu:2, gpu:5");
}

TEST_F(KnobGroupTest, WhatCannotBeAGroupIsRefused) {
  EXPECT_FALSE(KnobGroup::Of({}).ok());
  sim::SimulatedGpu& gpu = Add("V100", 0);
  std::vector<std::unique_ptr<DeviceKnob>> mixed;
  mixed.push_back(DeviceKnob::WithoutJournal(KnobKind::kGpuPowerLimit, gpu).value());
  mixed.push_back(DeviceKnob::WithoutJournal(KnobKind::kGraphicsClock, gpu).value());
  EXPECT_FALSE(KnobGroup::Of(std::move(mixed)).ok());
}

}  // namespace knob_group_test
}  // namespace zeus
