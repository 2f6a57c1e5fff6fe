#include "zeus/replay/job_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "zeus/replay/job_comparison.h"
#include "zeus/replay/replay_job.h"
#include "zeus/replay/testing/made_replay_job.h"

namespace zeus::replay {
namespace job_replay_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobReplay Make(const ReplayJob& job, const ContenderSpec& spec) {
  auto replay = JobReplay::Make(job, spec, 1);
  EXPECT_TRUE(replay.ok()) << replay.error().message;
  return std::move(replay).value();
}

std::vector<int> BatchSizes(const ReplayedRecurrence& recurrence) {
  std::vector<int> sizes;
  for (const ReplayedRun& run : recurrence.runs) sizes.push_back(run.batch_size);
  return sizes;
}

// Two epochs with batch size 16 cost 400 J; a single one with 8 costs 20 kJ.
ReplayJob JobWithADearArm() {
  return MadeReplayJob({{8, {1}, Seconds(100)}, {16, {2}, Seconds(1)}}, 16);
}

TEST(JobReplayTest, ABatchSizeWhoseFirstEpochIsTooDearIsNotBegunIfThatIsForeseen) {
  const ReplayJob job = JobWithADearArm();
  JobReplay replay = Make(job, {.name = "zeus"});
  replay.Next();
  const ReplayedRecurrence second = replay.Next();
  ASSERT_THAT(BatchSizes(second), ElementsAre(8, 16));
  EXPECT_EQ(second.runs[0].epochs, 0);
  EXPECT_EQ(second.runs[0].usage.cost, Joules(0));
  EXPECT_EQ(second.usage.cost, Joules(400));
}

TEST(JobReplayTest, ItIsStoppedAfterItsFirstEpochIfThatIsNotForeseen) {
  const ReplayJob job = MadeReplayJob({{8, {3}, Seconds(100)}, {16, {2}, Seconds(1)}}, 16);
  JobReplay replay = Make(job, {.name = "zeus", .foresees_epoch_costs = false});
  replay.Next();
  const ReplayedRecurrence second = replay.Next();
  ASSERT_THAT(BatchSizes(second), ElementsAre(8, 16));
  EXPECT_EQ(second.runs[0].epochs, 1);
  EXPECT_FALSE(second.runs[0].converged);
  EXPECT_TRUE(second.runs[0].profiled_limits);
  // Half of the profiling epoch runs at 100 W, half at 200 W.
  EXPECT_EQ(second.runs[0].usage.cost, Joules(25000));
}

TEST(JobReplayTest, TheFirstRunOfABatchSizeCarriesTheProfilingOfPowerLimits) {
  const ReplayJob job = MadeReplayJob({{16, {2}, Seconds(1)}}, 16);
  JobReplay replay = Make(job, {.name = "zeus"});
  EXPECT_EQ(replay.Next().usage.cost, Joules(450));
  EXPECT_EQ(replay.Next().usage.cost, Joules(400));
}

TEST(JobReplayTest, WithoutJustInTimeProfilingEachLimitTakesARun) {
  const ReplayJob job = MadeReplayJob({{16, {2}, Seconds(1)}}, 16);
  JobReplay replay = Make(job, {.name = "zeus_no_jit"});
  std::vector<double> limits;
  for (int i = 0; i < 4; ++i) limits.push_back(replay.Next().runs.back().limit.value());
  EXPECT_THAT(limits, ElementsAre(200, 100, 200, 200));
}

TEST(JobReplayTest, WithoutEarlyStoppingARunGoesOnToTheLastEpoch) {
  const ReplayJob job = MadeReplayJob({{8, {std::nullopt}, Seconds(1)}, {16, {2}, Seconds(1)}}, 16);
  JobReplay stopping = Make(job, {.name = "zeus"});
  JobReplay patient = Make(job, {.name = "zeus_no_early_stop"});
  stopping.Next();
  patient.Next();
  EXPECT_EQ(stopping.Next().runs.front().epochs, 4);
  EXPECT_EQ(patient.Next().runs.front().epochs, 10);
}

TEST(JobReplayTest, WithoutPruningABatchSizeThatFailedIsTriedAgain) {
  const ReplayJob job = MadeReplayJob({{8, {std::nullopt}, Seconds(1)}, {16, {2}, Seconds(1)}}, 16);
  const auto failures = [&](const char* name) {
    JobReplay replay = Make(job, {.name = name});
    std::int64_t failed = 0;
    for (int t = 0; t < 20; ++t) {
      const ReplayedRecurrence& recurrence = replay.Next();
      failed += std::ranges::count(recurrence.runs, 8, &ReplayedRun::batch_size);
    }
    return failed;
  };
  EXPECT_EQ(failures("zeus"), 1);
  EXPECT_GE(failures("zeus_no_pruning"), 2);
}

TEST(JobReplayTest, GridTriesEachPairAndKeepsTheCheapest) {
  const ReplayJob job = MadeReplayJob(
      {{8, {std::nullopt}, Seconds(1)}, {16, {2}, Seconds(1)}, {32, {1}, Seconds(1)}}, 16);
  JobReplay replay = Make(job, {.name = "grid"});
  EXPECT_THAT(BatchSizes(replay.Next()), ElementsAre(8, 16));
  std::vector<std::pair<int, double>> chosen;
  for (int t = 0; t < 5; ++t) {
    const ReplayedRun& run = replay.Next().runs.back();
    chosen.emplace_back(run.batch_size, run.limit.value());
  }
  using Pair = std::pair<int, double>;
  EXPECT_THAT(chosen, ElementsAre(Pair(16, 100), Pair(32, 200), Pair(32, 100), Pair(32, 200),
                                  Pair(32, 200)));
}

TEST(JobReplayTest, RunsMayOverlapAndAreLearnedWhenTheyEnd) {
  const ReplayJob job = MadeReplayJob({{8, {2}, Seconds(1)}, {16, {2}, Seconds(1)}}, 16);
  JobReplay replay = Make(job, {.name = "zeus"});
  const ReplayedRun exploring = replay.Begin(0, 0, false);
  const ReplayedRun meanwhile = replay.Begin(1, 0, true);
  EXPECT_EQ(exploring.role, RunRole::kExploring);
  EXPECT_EQ(meanwhile.role, RunRole::kConcurrent);
  EXPECT_EQ(meanwhile.batch_size, 16);
  EXPECT_FALSE(replay.End(exploring, Joules(0)));
  EXPECT_EQ(replay.Begin(2, 0, false).batch_size, 8);
  EXPECT_FALSE(replay.End(meanwhile, Joules(0)));
}

TEST(JobReplayTest, AJobThatNeverConvergesDegradesToTheDefault) {
  const ReplayJob job = MadeReplayJob(
      {{8, {std::nullopt}, Seconds(1)}, {16, {std::nullopt}, Seconds(1)}, {32, {11}, Seconds(1)}},
      16);
  EXPECT_FALSE(job.HasOracle());
  EXPECT_EQ(job.oracle().batch_size, 16);
  for (const std::string& name : ContenderNames()) {
    const auto summary = ReplaySeed(job, {.name = name}, 1, 10);
    ASSERT_TRUE(summary.ok()) << name;
    EXPECT_TRUE(std::isnan(summary.value().regret)) << name;
    EXPECT_GT(summary.value().usage.energy, Joules(0)) << name;
    EXPECT_EQ(summary.value().runs, summary.value().stopped) << name;
    EXPECT_EQ(summary.value().unfinished, 10) << name;
    EXPECT_TRUE(std::isfinite(summary.value().last_five_energy)) << name;
  }
  JobReplay zeus = Make(job, {.name = "zeus"});
  EXPECT_EQ(zeus.Next().runs.size(), 3u) << "every batch size once, then nothing can be gained";
  EXPECT_THAT(BatchSizes(zeus.Next()), ElementsAre(16));
  EXPECT_THAT(BatchSizes(Make(job, {.name = "default"}).Next()), ElementsAre(16));
  EXPECT_THAT(BatchSizes(Make(job, {.name = "oracle"}).Next()), ElementsAre(16));
}

TEST(JobReplayTest, TheDefaultsUsageIsWhatTheDefaultTakesTriesThatFailIncluded) {
  const ReplayJob job =
      MadeReplayJob({{8, {2}, Seconds(1)}, {16, {4, std::nullopt}, Seconds(1)}}, 16);
  // A recurrence takes 4 or 10 epochs per attempt and two attempts on average.
  EXPECT_NEAR(job.DefaultUsage().time.count(), 14.0, 1e-3);
  constexpr int kRecurrences = 20'000;
  const auto summary = ReplaySeed(job, {.name = "default"}, 1, kRecurrences);
  ASSERT_TRUE(summary.ok());
  EXPECT_NEAR(summary.value().usage.time.count() / kRecurrences, 14.0, 0.3);
  EXPECT_THAT(RemarksOnDefault(job, 32),
              ElementsAre(HasSubstr("16 stands in for the default, 32"),
                          HasSubstr("16, reaches the target in 1 of 2 recorded runs")));
  EXPECT_TRUE(RemarksOnDefault(JobWithADearArm(), 16).empty());
}

TEST(JobReplayTest, TheSameSeedGivesTheSameRuns) {
  const auto jobs = CatalogueJobs("a100", 0.5);
  ASSERT_TRUE(jobs.ok());
  const ReplayJob& job = jobs.value().front();
  for (const std::string& name : ContenderNames()) {
    const auto first = ReplaySeed(job, {.name = name}, 7, 50);
    const auto again = ReplaySeed(job, {.name = name}, 7, 50);
    EXPECT_EQ(first.value().usage.energy, again.value().usage.energy) << name;
    EXPECT_EQ(first.value().regret, again.value().regret) << name;
  }
}

TEST(JobReplayTest, AContenderThatNobodyKnowsIsRefusedWithThoseThatAreKnown) {
  const auto replay = JobReplay::Make(JobWithADearArm(), {.name = "magic"}, 1);
  ASSERT_FALSE(replay.ok());
  EXPECT_EQ(replay.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(replay.error().message, HasSubstr("\"magic\""));
  EXPECT_THAT(replay.error().message, HasSubstr("knowledge_gradient"));
}

TEST(ReplaySummaryTest, FewerRecurrencesThanFiveAreSummarizedAll) {
  const ReplayJob job = MadeReplayJob({{16, {2}, Seconds(1)}}, 16);
  const auto summary = ReplaySeed(job, {.name = "default"}, 1, 2);
  EXPECT_DOUBLE_EQ(summary.value().last_five_energy, 1.0);
  EXPECT_DOUBLE_EQ(summary.value().last_five_cost, 1.0);
  EXPECT_DOUBLE_EQ(summary.value().regret_of_50, 0.0);
}

TEST(CatalogueJobsTest, BatchSizesAreThoseThatFitTheMemory) {
  const auto largest = [](const char* gpu_model) {
    return CatalogueJobs(gpu_model, 0.5).value().front().arms.back().batch_size;
  };
  EXPECT_EQ(largest("p100"), 72);
  EXPECT_EQ(largest("RTX6000"), 128);
  EXPECT_EQ(largest("v100"), 192);
  EXPECT_EQ(largest("h100"), 192);
  EXPECT_EQ(CatalogueJobs("p100", 0.5).value().front().default_batch_size, 72);
}

}  // namespace job_replay_test
}  // namespace zeus::replay
