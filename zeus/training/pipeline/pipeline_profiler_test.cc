#include "zeus/training/pipeline/pipeline_profiler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/pipeline/testing/virtual_stage.h"
#include "zeus/training/testing/thread_ranks.h"

namespace zeus {
namespace pipeline_profiler_test {

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

constexpr Seconds kForward = 200ms;
constexpr Seconds kBackward = 400ms;

// A rank under test: a stage, its knob and the profiler.
struct Rank {
  explicit Rank(Collective& collective, PipelineProfiler::Options options, std::uint64_t seed = 1)
      : stage(seed),
        job(FindJobKnob(KnobKind::kGraphicsClock, *stage.monitor).value()),
        setter(*job.knob),
        profiler({stage.monitor->monitor(), job.devices, *job.knob, setter, collective}, options) {
    setter.WaitUntilDone();
  }

  void Run(const char* name, Seconds time) {
    profiler.OnInstructionBegin(name);
    stage.Compute(time);
    profiler.OnInstructionEnd(name);
  }

  // Runs four microbatches with some waiting.
  void Iterate() {
    for (int i = 0; i < 4; ++i) {
      Run("forward", kForward);
      stage.clock.Advance(Seconds(0.03 + 0.05 * (i % 3)));
      Run("backward", kBackward);
    }
    profiler.OnStepEnd();
    setter.WaitUntilDone();
  }

  int IterateUntilDone(int most = 300) {
    int iterations = 0;
    while (!profiler.done() && iterations < most) {
      Iterate();
      ++iterations;
    }
    return iterations;
  }

  VirtualStage stage;
  JobKnob job;
  ClockSetter setter;
  PipelineProfiler profiler;
};

TEST(PipelineProfilerTest, FindsTheTimesAndEnergiesOfAllClocksThatAreOfUse) {
  SingleProcess alone;
  Rank rank(alone, {});
  const int iterations = rank.IterateUntilDone();
  ASSERT_TRUE(rank.profiler.done());
  EXPECT_LT(iterations, 80);
  const auto profile = rank.profiler.Gather();
  ASSERT_TRUE(profile.ok()) << profile.error().message;

  const double gain = rank.stage.gpu->Snapshot().board_sensors().gain;
  ASSERT_EQ(profile.value().instructions.size(), 2U);
  for (const auto& instruction : profile.value().instructions) {
    const Seconds work = instruction.instruction == "forward" ? kForward : kBackward;
    EXPECT_GE(instruction.points.size(), 6U);
    for (const auto& point : instruction.points) {
      const auto truth = VirtualStage::PointAt(point.clock, work);
      EXPECT_NEAR(point.time / truth.time_per_epoch, 1, 0.002) << point.clock.ToMega();
      EXPECT_NEAR(point.energy / (truth.average_power * truth.time_per_epoch) / gain, 1, 0.02)
          << instruction.instruction << " at " << point.clock.ToMega();
    }
  }
  // Blocking power is lower at lower clocks, which must not count.
  EXPECT_NEAR(profile.value().blocking_power.value() / gain, 75, 8);
}

TEST(PipelineProfilerTest, StopsBeforeTheLowestClockAndGoesBackToTheHighest) {
  SingleProcess alone;
  Rank rank(alone, {});
  rank.IterateUntilDone();
  rank.stage.clock.Advance(1s);
  EXPECT_EQ(rank.stage.gpu->Snapshot().clock(ClockDomain::kGraphics), 1410_MHz);
  const auto profile = rank.profiler.Gather().value();
  for (const auto& point : profile.instructions.front().points) EXPECT_GT(point.clock, 400_MHz);
}

TEST(PipelineProfilerTest, PointsGetSlowerAndTakeLessEffectiveEnergy) {
  SingleProcess alone;
  Rank rank(alone, {});
  rank.IterateUntilDone();
  const auto profile = rank.profiler.Gather().value();
  for (const auto& instruction : profile.instructions)
    for (std::size_t i = 1; i < instruction.points.size(); ++i) {
      const auto& faster = instruction.points[i - 1];
      const auto& slower = instruction.points[i];
      EXPECT_LT(faster.time, slower.time);
      EXPECT_GT(faster.energy - profile.blocking_power * faster.time,
                slower.energy - profile.blocking_power * slower.time);
    }
}

TEST(PipelineProfilerTest, WithoutPermissionItSaysSoAndEnds) {
  SingleProcess alone;
  Rank rank(alone, {});
  rank.stage.gpu->InjectFault(
      {.kind = sim::FaultKind::kNoPermission, .at = Seconds(0), .probability = 1});
  EXPECT_LT(rank.IterateUntilDone(), 20);
  ASSERT_TRUE(rank.profiler.trouble());
  EXPECT_EQ(rank.profiler.trouble()->code, ErrorCode::kPermissionDenied);
  EXPECT_FALSE(rank.profiler.Gather().ok());
}

TEST(PipelineProfilerTest, AProgramThatAnnouncesNoInstructionsIsTold) {
  SingleProcess alone;
  Rank rank(alone, {});
  for (int i = 0; i < 50 && !rank.profiler.done(); ++i) {
    rank.stage.clock.Advance(1s);
    rank.profiler.OnStepEnd();
  }
  ASSERT_TRUE(rank.profiler.trouble());
  EXPECT_NE(rank.profiler.trouble()->message.find("OnInstructionBegin"), std::string::npos);
}

// Two GPUs of one stage take the time of the slower one and the sum of both energies.
TEST(PipelineProfilerTest, RanksOfAStageAreAddedUp) {
  zeus::testing::Group group(2);
  std::vector<std::optional<pipeline::PipelineProfile>> profiles(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&group, &profiles, i] {
      zeus::testing::GroupMember member(group, i);
      Rank rank(member, {.rank = {.tp_rank = i, .tp_degree = 2}},
                static_cast<std::uint64_t>(i + 1));
      rank.IterateUntilDone();
      if (auto profile = rank.profiler.Gather(); profile.ok())
        profiles[static_cast<std::size_t>(i)] = std::move(profile).value();
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiles[0] && profiles[1]);
  EXPECT_EQ(profiles[0]->blocking_power, profiles[1]->blocking_power);
  const auto& point = profiles[0]->instructions.front().points.front();
  const auto truth = VirtualStage::PointAt(
      1410_MHz, profiles[0]->instructions.front().instruction == "forward" ? kForward : kBackward);
  EXPECT_NEAR(point.energy / (truth.average_power * truth.time_per_epoch), 2, 0.2);
  EXPECT_NEAR(profiles[0]->blocking_power.value(), 150, 20);
}

}  // namespace pipeline_profiler_test
}  // namespace zeus
