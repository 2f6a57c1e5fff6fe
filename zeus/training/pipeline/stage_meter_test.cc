#include "zeus/training/pipeline/stage_meter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "zeus/training/pipeline/testing/virtual_stage.h"

namespace zeus {
namespace stage_meter_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using zeus::testing::VirtualStage;

class StageMeterTest : public ::testing::Test {
 protected:
  // The lengths of waiting vary as in a pipeline; the sensor shows new values every 100 ms.
  void Train(int microbatches, Seconds forward, Seconds backward) {
    for (int i = 0; i < microbatches; ++i) {
      Run("forward", forward);
      stage.clock.Advance(Seconds(0.013 + 0.017 * (i % 4)));
      Run("backward", backward);
    }
  }

  void Run(const char* name, Seconds time) {
    meter.Begin(name);
    stage.Compute(time);
    meter.End(name);
  }

  // Every board's sensors have a gain of their own, so measured powers are compared relative to it.
  double Gain() { return stage.gpu->Snapshot().board_sensors().gain; }

  VirtualStage stage;
  StageMeter meter{stage.monitor->monitor(), {0}};
};

TEST_F(StageMeterTest, TellsTimesAndPowersOfInstructionsThatAreShorterThanTheSensorsUpdates) {
  Train(60, 30ms, 70ms);  // Warms the GPU up.
  meter.StartOver(2);
  Train(60, 30ms, 70ms);
  const auto reading = meter.Read();
  ASSERT_EQ(reading.instructions.size(), 2U);
  const auto& forward = reading.instructions[0];
  const auto& backward = reading.instructions[1];
  EXPECT_EQ(forward.instruction, "forward");
  EXPECT_EQ(forward.repetitions, 59);
  EXPECT_NEAR(forward.time.count(), 0.030, 1e-6);
  EXPECT_NEAR(backward.time.count(), 0.070, 1e-6);
  const double power = VirtualStage::PointAt(1410_MHz, 30ms).average_power.value();
  EXPECT_NEAR(forward.power.value() / Gain(), power, 0.02 * power);
  EXPECT_NEAR(backward.power.value() / Gain(), power, 0.02 * power);
  EXPECT_NEAR(reading.waiting.power.value() / Gain(), VirtualStage::kBlocking.value(), 6);
  EXPECT_LT(forward.power_sigma, 0.03 * forward.power);
}

TEST_F(StageMeterTest, WhatFollowsAChangeOfTheClockIsNotCounted) {
  Train(3, 30ms, 70ms);
  meter.StartOver(4);
  Train(2, 30ms, 70ms);
  for (const auto& estimate : meter.Read().instructions) EXPECT_EQ(estimate.repetitions, 0);
  Train(1, 30ms, 70ms);
  for (const auto& estimate : meter.Read().instructions) EXPECT_EQ(estimate.repetitions, 1);
}

TEST_F(StageMeterTest, AnEndWithoutItsBeginIsIgnored) {
  meter.End("forward");
  meter.Begin("forward");
  meter.End("backward");
  EXPECT_EQ(meter.Read().instructions[0].repetitions, 0);
}

}  // namespace stage_meter_test
}  // namespace zeus
