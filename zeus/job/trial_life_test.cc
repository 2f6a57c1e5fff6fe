// The life of trials: when they are active, when they are stopped, and how they expire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace trial_life_test {

using ::testing::HasSubstr;
using namespace literals;

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

}  // namespace trial_life_test
}  // namespace zeus
