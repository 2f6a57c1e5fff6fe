#include "zeus/training/pipeline/pipeline_frequency_optimizer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/training/pipeline/testing/fixed_plans.h"
#include "zeus/training/pipeline/testing/virtual_stage.h"

namespace zeus {
namespace pipeline_frequency_optimizer_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using zeus::testing::VirtualStage;

// Trains a pipeline of one stage and four microbatches.
class PipelineFrequencyOptimizerTest : public ::testing::Test {
 protected:
  PipelineOptions Options() {
    PipelineOptions options;
    options.service = &service;
    options.job.id = "job";
    options.job.microbatches = 4;
    return options;
  }

  void Start(PipelineOptions options) {
    optimizer = std::make_unique<PipelineFrequencyOptimizer>(*stage.monitor, std::move(options));
    optimizer->WaitForClock();
  }
  void Start() { Start(Options()); }

  // Runs an iteration; returns the clocks in the middle of each instruction.
  std::vector<Hertz> Iterate(const std::vector<const char*>& names = {"forward", "backward"}) {
    std::vector<Hertz> clocks;
    for (int i = 0; i < 4; ++i) {
      for (const char* const name : names) {
        optimizer->OnInstructionBegin(name);
        optimizer->WaitForClock();
        const Seconds work = slowdown * (std::string(name) == "forward" ? 200ms : 400ms);
        stage.Compute(work / 2);
        clocks.push_back(stage.gpu->CurrentClock(ClockDomain::kGraphics).value());
        stage.Compute(work / 2);
        optimizer->OnInstructionEnd(name);
        optimizer->WaitForClock();
        stage.clock.Advance(Seconds(0.05 + 0.03 * (i % 3)));
      }
    }
    optimizer->OnStepEnd();
    optimizer->WaitForClock();
    return clocks;
  }

  void Profile() {
    for (int i = 0; i < 200 && optimizer->plan() == nullptr; ++i) Iterate();
    ASSERT_NE(optimizer->plan(), nullptr);
  }

  Hertz PointClock(const char* instruction, std::size_t point) {
    return optimizer->profile()->Find(0, instruction)->points[point].clock;
  }

  // Goes to the middle of an iteration, where the clock is low.
  void BeginBackward() {
    for (const char* const name : {"forward", "backward"}) {
      optimizer->OnInstructionBegin(name);
      optimizer->WaitForClock();
    }
  }

  bool Locked() {
    stage.clock.Advance(1s);
    return stage.gpu->CurrentThrottleReasons().value().locked_clock;
  }

  VirtualStage stage;
  zeus::testing::FixedPlans service;
  double slowdown = 1;
  std::unique_ptr<PipelineFrequencyOptimizer> optimizer;
};

TEST_F(PipelineFrequencyOptimizerTest, CountsMicrobatchesThatNobodySaid) {
  PipelineOptions options = Options();
  options.job.microbatches = 0;
  Start(std::move(options));
  Profile();
  EXPECT_EQ(optimizer->plan()->plan.stages.front().size(), 8U);
}

TEST_F(PipelineFrequencyOptimizerTest, MeasuresPlansAndAppliesWithoutAnybodysHelp) {
  Start();
  EXPECT_EQ(optimizer->plan(), nullptr);
  Profile();
  EXPECT_EQ(service.submitted, 1);
  EXPECT_GT(optimizer->profiling_iterations(), 5);
  const std::vector<Hertz> clocks = Iterate();
  for (std::size_t i = 0; i < clocks.size(); ++i)
    EXPECT_EQ(clocks[i], PointClock(i % 2 == 0 ? "forward" : "backward", i % 2)) << i;
  EXPECT_FALSE(optimizer->trouble());
}

TEST_F(PipelineFrequencyOptimizerTest, TellsTheDriverOnlyWhatChanges) {
  Start();
  Profile();
  const std::int64_t before = optimizer->clock_changes();
  Iterate();
  Iterate();
  EXPECT_EQ(optimizer->clock_changes() - before, 2 * 2 * 4);
}

TEST_F(PipelineFrequencyOptimizerTest, ClocksAreUnlockedAtTheEnd) {
  Start();
  Profile();
  BeginBackward();
  EXPECT_EQ(Locked(), true);
  optimizer->OnTrainEnd();
  EXPECT_EQ(Locked(), false);
  Iterate();  // Calls after the end change nothing.
  EXPECT_EQ(Locked(), false);
}

TEST_F(PipelineFrequencyOptimizerTest, ClocksAreUnlockedByDestruction) {
  Start();
  Profile();
  BeginBackward();
  EXPECT_EQ(Locked(), true);
  optimizer.reset();
  EXPECT_EQ(Locked(), false);
}

TEST_F(PipelineFrequencyOptimizerTest, AKnownJobIsNotMeasuredAgain) {
  Start();
  Profile();
  const auto points = optimizer->profile()->Find(0, "backward")->points;
  optimizer.reset();
  stage.clock.Advance(1s);  // Until the GPU has adopted the unlocked clock.
  Start();
  ASSERT_NE(optimizer->plan(), nullptr);
  EXPECT_EQ(optimizer->profile(), nullptr);
  EXPECT_EQ(Iterate()[1], points[1].clock);
  EXPECT_EQ(service.submitted, 1);
}

TEST_F(PipelineFrequencyOptimizerTest, OtherInstructionsThanPlannedRunAtTheHighestClock) {
  Start();
  Profile();
  ::testing::internal::CaptureStderr();
  const std::vector<Hertz> clocks = Iterate({"forward", "recomputation", "backward"});
  Iterate({"forward", "recomputation", "backward"});
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (std::size_t i = 1; i < clocks.size(); ++i) EXPECT_EQ(clocks[i], 1410_MHz);
  ASSERT_TRUE(optimizer->trouble());
  EXPECT_NE(optimizer->trouble()->message.find("recomputation"), std::string::npos);
  // It is logged once.
  EXPECT_NE(log.find("recomputation"), std::string::npos);
  EXPECT_EQ(log.find("recomputation"), log.rfind("recomputation"));
}

TEST_F(PipelineFrequencyOptimizerTest, AnotherPlanEndsTheTroubleWithTheLast) {
  Start();
  Profile();
  Iterate({"backward", "forward"});
  ASSERT_TRUE(optimizer->trouble());
  service.Change(std::nullopt);
  Iterate();
  EXPECT_EQ(optimizer->plan()->version, 2);
  Iterate();
  EXPECT_FALSE(optimizer->trouble());
}

TEST_F(PipelineFrequencyOptimizerTest, AStragglerReportsItsPaceAtTheEndOfTheIteration) {
  Start();
  Profile();
  Iterate();
  EXPECT_TRUE(service.paces.empty());
  const Seconds planned = optimizer->plan()->plan.time;
  slowdown = 1.2;
  Iterate();
  ASSERT_EQ(service.paces.size(), 1U);
  EXPECT_NEAR(*service.paces[0] / planned, 1.2, 0.02);
  EXPECT_EQ(optimizer->plan()->version, 2);
  // The straggler keeps its previous plan.
  const std::vector<Hertz> clocks = Iterate();
  EXPECT_EQ(clocks[0], PointClock("forward", 0));
  EXPECT_EQ(clocks[1], PointClock("backward", 1));
  EXPECT_EQ(service.paces.size(), 1U);
  slowdown = 1;
  Iterate();
  ASSERT_EQ(service.paces.size(), 2U);
  EXPECT_FALSE(service.paces[1]);
}

TEST_F(PipelineFrequencyOptimizerTest, ThePaceOfSomebodyElseIsFollowedFromTheNextIterationOn) {
  Start();
  Profile();
  Iterate();
  service.Change(10s);
  Iterate();
  const std::vector<Hertz> clocks = Iterate();
  EXPECT_EQ(clocks[0], PointClock("forward", 2));
  EXPECT_EQ(clocks[1], PointClock("backward", 2));
}

TEST_F(PipelineFrequencyOptimizerTest, AServiceThatIsAwayLeavesThePlanAsItIs) {
  Start();
  Profile();
  service.fails = true;
  slowdown = 1.5;
  Iterate();
  Iterate();
  EXPECT_EQ(optimizer->plan()->version, 1);
  service.fails = false;
  for (int i = 0; i < 20; ++i) Iterate();
  EXPECT_EQ(optimizer->plan()->version, 2);
}

TEST_F(PipelineFrequencyOptimizerTest, AServiceThatFailsSlowlyIsLeftAlone) {
  Start();
  Profile();
  service.fails = true;
  service.before_failure = [this] { stage.clock.Advance(10s); };
  for (int i = 0; i < 45; ++i) {
    slowdown = 1.5 + 0.1 * (i % 3);  // There is something to report after every iteration.
    Iterate();
  }
  EXPECT_EQ(service.failures, 2);
  EXPECT_EQ(optimizer->plan()->version, 1);
}

TEST_F(PipelineFrequencyOptimizerTest, WithoutPermissionTrainingGoesOn) {
  stage.gpu->InjectFault(
      {.kind = sim::FaultKind::kNoPermission, .at = Seconds(0), .probability = 1});
  Start();
  for (int i = 0; i < 3; ++i) Iterate();
  ASSERT_TRUE(optimizer->trouble());
  EXPECT_EQ(optimizer->trouble()->code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(optimizer->plan(), nullptr);
}

TEST_F(PipelineFrequencyOptimizerTest, WithoutAServiceItSaysWhatIsMissing) {
  PipelineOptions options = Options();
  options.service = nullptr;
  Start(std::move(options));
  Iterate();
  ASSERT_TRUE(optimizer->trouble());
  EXPECT_NE(optimizer->trouble()->message.find("plan service"), std::string::npos);
}

}  // namespace pipeline_frequency_optimizer_test
}  // namespace zeus
