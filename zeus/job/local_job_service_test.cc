#include "zeus/job/local_job_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace local_job_service_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace literals;

TEST_F(LocalJobServiceTest, RegisteringTwiceGivesTheSameJob) {
  const auto first = service_.Register(Spec());
  const auto second = service_.Register(Spec());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(first.value().created);
  EXPECT_FALSE(second.value().created);
  EXPECT_EQ(second.value().job.seed, 1U);
}

TEST_F(LocalJobServiceTest, AnotherSpecUnderTheSameIdIsAConflictThatNamesTheField) {
  Register(Spec());
  JobSpec other = Spec();
  other.max_epochs = 20;
  const auto again = service_.Register(other);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_THAT(again.error().message, HasSubstr("max_epochs is 10, not 20"));
}

TEST_F(LocalJobServiceTest, AnotherGpuModelIsTheSameJobOnlyIfBeliefsAreTranslated) {
  Register(Spec());
  JobSpec other = Spec();
  other.gpu_model = "A40";
  other.max_power = 300_W;
  EXPECT_TRUE(service_.Register(other).ok());

  JobSpec alone = Spec();
  alone.id = "alone";
  alone.translate_gpu_models = false;
  ASSERT_TRUE(service_.Register(alone).ok());
  alone.gpu_model = "A40";
  EXPECT_EQ(service_.Register(alone).error().code, ErrorCode::kConflict);
}

TEST_F(LocalJobServiceTest, AnIdIsMadeUpFromThePrefix) {
  JobSpec spec = Spec();
  spec.id.clear();
  spec.prefix = "mnist";
  const auto first = service_.Register(spec);
  const auto second = service_.Register(spec);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(first.value().job.spec.id, StartsWith("mnist-"));
  EXPECT_NE(first.value().job.spec.id, second.value().job.spec.id);
}

TEST_F(LocalJobServiceTest, TheFirstTrialRunsTheDefault) {
  Register(Spec());
  const StartedTrial started = Start();
  EXPECT_EQ(started.trial.number, 1);
  EXPECT_EQ(started.trial.batch_size, 32);
  EXPECT_EQ(started.trial.role, RunRole::kExploring);
  EXPECT_EQ(started.trial.status, TrialStatus::kDispatched);
  EXPECT_EQ(started.max_epochs, 10);
  EXPECT_EQ(started.unprofiled_batch_sizes.size(), 4U);
}

TEST_F(LocalJobServiceTest, TheSameRequestGetsTheSameTrial) {
  Register(Spec());
  const auto first = Start({.request_id = "r1"});
  const auto second = Start({.request_id = "r1"});
  const auto third = Start({.request_id = "r2"});
  EXPECT_EQ(second.trial.number, first.trial.number);
  EXPECT_NE(third.trial.number, first.trial.number);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(LocalJobServiceTest, NamesFromClientsAreOneLineOfText) {
  Register(Spec());
  for (const char* const text : {"a\nb", "a\x1B[31m", "a\x7F"}) {
    EXPECT_THAT(service_.StartTrial({.job_id = Spec().id, .request_id = text}).error().message,
                HasSubstr("request_id"));
    EXPECT_THAT(service_.StartTrial({.job_id = Spec().id, .gpu_model = text}).error().message,
                HasSubstr("gpu_model"));
  }
}

TEST_F(LocalJobServiceTest, ATrialConvergesWhenItsMetricIsAsGoodAsTheTarget) {
  Register(Spec());
  Start();
  auto answer = ReportEpoch(1, 1, 0.5);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer.value().stop);
  EXPECT_EQ(answer.value().trial.status, TrialStatus::kReporting);
  answer = ReportEpoch(1, 2, 0.9);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer.value().stop);
  EXPECT_TRUE(answer.value().converged);
  EXPECT_FALSE(answer.value().retry);
  const auto job = service_.GetJob("job");
  EXPECT_EQ(job.value().least_cost, 20_J);
  EXPECT_EQ(job.value().least_cost_batch_size, 32);
}

TEST_F(LocalJobServiceTest, ALossThatShrinksConvergesFromAbove) {
  JobSpec spec = Spec();
  spec.higher_is_better = false;
  Register(spec);
  Start();
  EXPECT_FALSE(ReportEpoch(1, 1, 1.5).value().converged);
  EXPECT_TRUE(ReportEpoch(1, 2, 0.5).value().converged);
}

TEST_F(LocalJobServiceTest, ARepeatedReportGetsTheSameAnswer) {
  Register(Spec());
  Start();
  ASSERT_TRUE(ReportEpoch(1, 1, 0.5).ok());
  EXPECT_FALSE(ReportEpoch(1, 1, 0.5).value().stop);
  ASSERT_TRUE(ReportEpoch(1, 2, 0.95).ok());
  EXPECT_TRUE(ReportEpoch(1, 2, 0.95).value().converged);
  EXPECT_TRUE(ReportEpoch(1, 3, 0.1).value().converged) << "an ended trial answers how it ended";
  EXPECT_EQ(service_.GetArms("job", "").value().arms[2].runs, 1);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(LocalJobServiceTest, AReportThatContradictsAnEarlierOneIsAConflict) {
  Register(Spec());
  Start();
  ASSERT_TRUE(ReportEpoch(1, 3, 0.5).ok());
  EXPECT_THAT(ReportEpoch(1, 2, 0.5).error().message, StartsWith("epoch: "));
  EXPECT_THAT(ReportEpoch(1, 3, 0.6).error().message, StartsWith("metric: "));
  const auto less_energy = service_.Report(
      {.job_id = "job", .trial = 1, .epoch = 4, .time = Seconds(4), .energy = 1_J, .metric = 0.5});
  EXPECT_EQ(less_energy.error().code, ErrorCode::kConflict);
  EXPECT_THAT(less_energy.error().message, StartsWith("energy_joules: "));
}

TEST_F(LocalJobServiceTest, NumbersThatMakeNoSenseAreRefusedByName) {
  Register(Spec());
  Start();
  const auto refused = [&](TrialReport report) {
    report.job_id = "job";
    report.trial = 1;
    const auto answer = service_.Report(report);
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
    return answer.error().message;
  };
  EXPECT_THAT(refused({.epoch = 0}), StartsWith("epoch: "));
  EXPECT_THAT(refused({.epoch = 1, .energy = Joules(-1)}), StartsWith("energy_joules: "));
  EXPECT_THAT(refused({.epoch = 1, .time = Seconds(NAN)}), StartsWith("time_seconds: "));
  EXPECT_THAT(refused({.epoch = 1, .metric = INFINITY}), StartsWith("metric: "));
  EXPECT_THAT(refused({.epoch = 1, .epoch_energy = 1_J}), StartsWith("epoch_time_seconds: "));
  EXPECT_THAT(refused({.epoch = 1, .energy = Joules(1e308)}), StartsWith("energy_joules: "));
}

TEST_F(LocalJobServiceTest, UnknownJobsAndTrialsAreNotFound) {
  EXPECT_EQ(service_.StartTrial({.job_id = "job"}).error().code, ErrorCode::kNotFound);
  Register(Spec());
  EXPECT_EQ(ReportEpoch(7, 1, 0.1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(service_.Heartbeat("job", 7).error().code, ErrorCode::kNotFound);
}

// W25: a process that dies frees its place.
// W23: a concurrent trial that ends after the stage has changed counts.
TEST_F(LocalJobServiceTest, EpochCostsTakeTheRunnersWordForIt) {
  Register(Spec());
  Start();
  ASSERT_TRUE(service_
                  .Report({.job_id = "job",
                           .trial = 1,
                           .epoch = 1,
                           .time = Seconds(9),
                           .energy = 90_J,
                           .metric = 0.95,
                           .epoch_energy = 7_J,
                           .epoch_time = Seconds(1),
                           .power_limit = 150_W})
                  .ok());
  EXPECT_EQ(service_.GetArms("job", "").value().arms[2].epoch_cost, 7_J);
  EXPECT_EQ(service_.GetTrial("job", 1).value().power_limit, 150_W);
}

TEST_F(LocalJobServiceTest, EpochCostsOfANewGpuModelAreLearned) {
  Register(Spec());
  EpochCostReport report{
      .job_id = "job", .gpu_model = "A40", .batch_size = 16, .time = Seconds(1), .energy = 5_J};
  ASSERT_TRUE(service_.LearnEpochCost(report).ok());
  EXPECT_EQ(service_.GetArms("job", "A40").value().arms[1].epoch_cost, 5_J);
  report.batch_size = 17;
  EXPECT_THAT(service_.LearnEpochCost(report).error().message, StartsWith("batch_size: "));
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(LocalJobServiceTest, AJobWithOneBatchSizeRuns) {
  for (const std::string& policy : PolicyNames()) {
    JobSpec spec = Spec();
    spec.id = "job";
    spec.policy = policy;
    spec.batch_sizes = {32};
    Register(spec);
    for (int recurrence = 0; recurrence < 8; ++recurrence) {
      const auto trial = Start().trial;
      EXPECT_EQ(trial.batch_size, 32) << policy;
      Converge(trial.number, 2 + recurrence % 2);
    }
    ExpectBeliefIsThatOfTheEvents();
    ASSERT_TRUE(service_.Delete("job").ok());
  }
}

TEST_F(LocalJobServiceTest, ADeletedJobIsGone) {
  Register(Spec());
  Start();
  ASSERT_TRUE(service_.Delete("job").ok());
  EXPECT_EQ(service_.GetJob("job").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReportEpoch(1, 1, 0.1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(service_.Delete("job").error().code, ErrorCode::kNotFound);
}

// The life of trials: when they are active, when they are stopped, and how they expire.

using TrialLifeTest = LocalJobServiceTest;

TEST_F(TrialLifeTest, ATrialStopsWhenMoreWouldCostMoreThanTwiceTheLeast) {
  Register(Spec());
  Start();
  Converge(1, 2);  // 20 J: the bound is 40 J, four epochs.
  Start();
  for (int epoch = 1; epoch <= 3; ++epoch) EXPECT_FALSE(ReportEpoch(2, epoch, 0.1).value().stop);
  const auto answer = ReportEpoch(2, 4, 0.1);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer.value().stop);
  EXPECT_FALSE(answer.value().converged);
  EXPECT_TRUE(answer.value().retry);
  EXPECT_EQ(answer.value().trial.status, TrialStatus::kStopped);
  // W22: a cheap failure does not lower the bound.
  EXPECT_EQ(service_.GetJob("job").value().least_cost, 20_J);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(TrialLifeTest, ReasonsCountEpochs) {
  Register(Spec());
  Start();
  Converge(1, 1);
  EXPECT_EQ(service_.GetTrial("job", 1).value().reason, "reached the target after 1 epoch");
  Start();
  Converge(2, 2);
  EXPECT_EQ(service_.GetTrial("job", 2).value().reason, "reached the target after 2 epochs");
}

TEST_F(TrialLifeTest, TheGreatestNumberOfEpochsStops) {
  Register(Spec());
  Start();
  EXPECT_TRUE(ReportEpoch(1, 10, 0.1).value().stop);
}

TEST_F(TrialLifeTest, WhatComesAfterTheGreatestNumberOfEpochsDoesNotConverge) {
  Register(Spec());
  Start();
  const auto answer = ReportEpoch(1, 11, 0.95);
  EXPECT_TRUE(answer.value().stop);
  EXPECT_FALSE(answer.value().converged);
}

TEST_F(TrialLifeTest, ADamagedJobDoesNotKeepOthersFromExpiring) {
  Register(Spec());
  JobSpec other = Spec();
  other.id = "a-damaged";
  Register(other);
  Start();
  ASSERT_TRUE(service_.StartTrial({.job_id = "a-damaged"}).ok());
  ASSERT_TRUE(repository_
                  .Write([](JobTransaction& transaction) -> Status {
                    ZEUS_TRY(Job job, transaction.LockJob("a-damaged"));
                    job.policy_state = Json::array();
                    return transaction.UpdateJob(job);
                  })
                  .ok());
  clock_.Advance(Seconds(61));
  EXPECT_THAT(service_.ExpireOverdueTrials().error().message, HasSubstr("job a-damaged"));
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kExpired);
}

TEST_F(TrialLifeTest, TheDeadlineCountsAllTriesAndEndsTheRecurrence) {
  JobSpec spec = Spec();
  spec.deadline = Seconds(6);
  spec.beta.reset();
  Register(spec);
  Start();
  EXPECT_FALSE(ReportEpoch(1, 4, 0.1).value().stop);
  ASSERT_TRUE(
      service_.EndTrial({.job_id = "job", .trial = 1, .status = TrialStatus::kStopped}).ok());
  const auto second = Start({.recurrence = 0});
  EXPECT_EQ(second.trial.attempt, 1);
  const auto answer = ReportEpoch(2, 2, 0.1);
  EXPECT_TRUE(answer.value().stop);
  EXPECT_FALSE(answer.value().retry);
  EXPECT_THAT(answer.value().message, HasSubstr("deadline"));
}

TEST_F(TrialLifeTest, WhoExploresHoldsHisPlaceAndOthersRunTheBestKnown) {
  Register(Spec());
  Start();
  Converge(1, 2);
  const auto explorer = Start();
  EXPECT_EQ(explorer.trial.batch_size, 16);
  const auto other = Start();
  EXPECT_EQ(other.trial.role, RunRole::kConcurrent);
  EXPECT_EQ(other.trial.batch_size, 32);
}

TEST_F(TrialLifeTest, ATrialThatIsSilentExpiresAndItsPlaceIsFree) {
  Register(Spec());
  Start();
  clock_.Advance(Seconds(61));
  const auto next = Start();
  EXPECT_EQ(next.trial.batch_size, 32);
  EXPECT_EQ(next.trial.role, RunRole::kExploring);
  EXPECT_EQ(service_.GetTrial("job", 1).value().status, TrialStatus::kExpired);
}

TEST_F(TrialLifeTest, HeartbeatsAndReportsKeepATrialAlive) {
  Register(Spec());
  Start();
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(Seconds(50));
    ASSERT_TRUE(i % 2 == 0 ? service_.Heartbeat("job", 1).ok() : ReportEpoch(1, i, 0.1).ok());
    EXPECT_EQ(service_.ExpireOverdueTrials().value(), 0);
  }
  clock_.Advance(Seconds(61));
  EXPECT_EQ(service_.ExpireOverdueTrials().value(), 1);
  EXPECT_EQ(service_.ExpireOverdueTrials().value(), 0);
}

TEST_F(TrialLifeTest, WhoWasTakenForDeadAndSpeaksIsNotLost) {
  Register(Spec());
  Start();
  clock_.Advance(Seconds(61));
  Start();
  Converge(1, 3);
  Converge(2, 2);
  EXPECT_EQ(service_.GetArms("job", "").value().arms[2].runs, 2);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(TrialLifeTest, ResultsOfConcurrentTrialsAreNeverLost) {
  JobSpec spec = Spec();
  spec.batch_sizes = {32};
  spec.pruning_rounds = 1;
  Register(spec);
  Start();
  const auto concurrent = Start();
  Converge(1, 2);
  Start();
  Converge(concurrent.trial.number, 4);
  EXPECT_EQ(service_.GetArms("job", "").value().arms[0].runs, 2);
  ExpectBeliefIsThatOfTheEvents();
}

TEST_F(TrialLifeTest, AFailedTrialTeachesNothing) {
  Register(Spec());
  Start();
  const auto ended = service_.EndTrial({.job_id = "job", .trial = 1, .reason = "crashed"});
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended.value().status, TrialStatus::kFailed);
  EXPECT_EQ(Start().trial.batch_size, 32);
  EXPECT_TRUE(service_.EndTrial({.job_id = "job", .trial = 1, .reason = "again"}).ok());
  EXPECT_EQ(service_.GetTrial("job", 1).value().reason, "crashed");
}

TEST_F(TrialLifeTest, OnlyARecurrenceThatDidNotSucceedIsTriedAgain) {
  Register(Spec());
  Start();
  TrialRequest again{.job_id = "job", .recurrence = 0};
  EXPECT_EQ(service_.StartTrial(again).error().code, ErrorCode::kConflict);
  Converge(1, 2);
  EXPECT_EQ(service_.StartTrial(again).error().code, ErrorCode::kConflict);
  again.recurrence = 5;
  EXPECT_EQ(service_.StartTrial(again).error().code, ErrorCode::kNotFound);
}

TEST_F(TrialLifeTest, ARecurrenceIsGivenUpAfterTwentyTries) {
  JobSpec spec = Spec();
  spec.beta.reset();
  Register(spec);
  Start();
  Converge(1, 2);
  auto trial = Start().trial;
  for (int attempt = 1; attempt < 20; ++attempt) {
    ASSERT_TRUE(ReportEpoch(trial.number, 10, 0.1).value().retry);
    trial = Start({.recurrence = 1}).trial;
    EXPECT_EQ(trial.attempt, attempt);
  }
  EXPECT_FALSE(ReportEpoch(trial.number, 10, 0.1).value().retry);
  EXPECT_EQ(service_.StartTrial({.job_id = "job", .recurrence = 1}).error().code,
            ErrorCode::kConflict);
}

TEST_F(TrialLifeTest, WhatNeverConvergesIsTriedWithEveryBatchSizeAndNoMore) {
  for (const char* policy : {"zeus", "knowledge_gradient"}) {
    JobSpec spec = Spec();
    spec.policy = policy;
    Register(spec);
    auto trial = Start().trial;
    std::set<int> tried{trial.batch_size};
    int tries = 1;
    while (ReportEpoch(trial.number, 10, 0.1).value().retry) {
      trial = Start({.recurrence = 0}).trial;
      tried.insert(trial.batch_size);
      ++tries;
    }
    EXPECT_EQ(tried.size(), 4U) << policy;
    EXPECT_LE(tries, 5) << policy;
    ASSERT_TRUE(service_.Delete("job").ok());
  }
}

TEST(TrialLifeThreadsTest, ManyClientsOnOneJobLoseNothing) {
  SystemClock clock;
  MemoryRepository repository;
  LocalJobService service(repository, clock);
  for (const std::string& policy : PolicyNames()) {
    ASSERT_TRUE(service
                    .Register({.id = policy,
                               .batch_sizes = {8, 16, 32, 64},
                               .default_batch_size = 32,
                               .policy = policy,
                               .seed = 7,
                               .max_power = 250_W,
                               .gpu_model = "V100"})
                    .ok());
    const auto client = [&](int seed) {
      for (int run = 0; run < 25; ++run) {
        const auto started = service.StartTrial({.job_id = policy});
        ASSERT_TRUE(started.ok());
        const Trial& trial = started.value().trial;
        const int epochs = 3 + (seed + run) % 3;
        ASSERT_TRUE(service
                        .Report({.job_id = policy,
                                 .trial = trial.number,
                                 .epoch = epochs,
                                 .time = Seconds(epochs),
                                 .energy = Joules(100.0 * epochs + trial.batch_size),
                                 .metric = 1.0})
                        .ok());
      }
    };
    std::vector<std::thread> threads;
    for (int seed = 0; seed < 8; ++seed) threads.emplace_back(client, seed);
    for (std::thread& thread : threads) thread.join();

    const auto job = service.GetJob(policy);
    const auto events = service.ListEvents(policy, 0, 1'000'000);
    EXPECT_EQ(job.value().trials, 200);
    EXPECT_EQ(job.value().recurrences, 200);
    const auto replayed = ReplayPolicy(job.value(), events.value());
    ASSERT_TRUE(replayed.ok()) << replayed.error().message;
    EXPECT_EQ(replayed.value().dump(), job.value().policy_state.dump());
    const auto arms = service.GetArms(policy, "").value().arms;
    int runs = 0;
    for (const ArmBelief& arm : arms) runs += arm.runs;
    EXPECT_EQ(runs, 200) << policy;
  }
}

}  // namespace local_job_service_test
}  // namespace zeus
