#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "zeus/store/testing/repository_harness.h"

namespace zeus::testing {

// The promises of every JobRepository to many callers at once. Include it as
// repository_conformance.h.
class RepositoryConcurrency : public RepositoryTest {
 protected:
  static constexpr int kThreads = 16;

  template <class Function>
  static void InThreads(const Function& function) {
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&function, i] { function(i); });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_P(RepositoryConcurrency, NoChangeOfOneJobIsLost) {
  constexpr int kChanges = 20;
  ASSERT_TRUE(Insert(AJob("job")).ok());
  InThreads([&](int) {
    for (int i = 0; i < kChanges; ++i) {
      const Status counted = CountUp(*repository_, "job");
      EXPECT_TRUE(counted.ok()) << counted.error().message;
    }
  });
  ExpectCount(*repository_, "job", kThreads * kChanges);
}

TEST_P(RepositoryConcurrency, NoChangeOfManyJobsIsLost) {
  constexpr int kJobs = 8;
  constexpr int kRounds = 2;
  for (int i = 0; i < kJobs; ++i) ASSERT_TRUE(Insert(AJob("job" + std::to_string(i))).ok());
  InThreads([&](int thread) {
    for (int i = 0; i < kJobs * kRounds; ++i) {
      const std::string id = "job" + std::to_string((i * (thread + 1) + thread) % kJobs);
      const Status counted = CountUp(*repository_, id);
      EXPECT_TRUE(counted.ok()) << counted.error().message;
    }
  });
  std::int64_t total = 0;
  for (int i = 0; i < kJobs; ++i) {
    const auto job = repository_->FindJob("job" + std::to_string(i));
    ASSERT_TRUE(job.ok());
    ExpectCount(*repository_, job.value().spec.id, job.value().trials);
    total += job.value().trials;
  }
  EXPECT_EQ(total, kThreads * kJobs * kRounds);
}

TEST_P(RepositoryConcurrency, AFailureIsNobodyElsesFailure) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  constexpr int kChanges = 16;
  InThreads([&](int thread) {
    for (int i = 0; i < kChanges; ++i) {
      if (thread % 2 == 0) {
        EXPECT_TRUE(CountUp(*repository_, "job").ok());
        continue;
      }
      const Status failed = repository_->Write([&](JobTransaction& change) -> Status {
        ZEUS_TRY(Job job, change.LockJob("job"));
        job.trials += 1000;
        ZEUS_RETURN_IF_ERROR(change.UpdateJob(job));
        // By the change itself, or by the database.
        if (thread % 4 == 1) return Error{ErrorCode::kInvalidArgument, "changed my mind"};
        ZEUS_RETURN_IF_ERROR(change.InsertTrial(ATrial("job", 1'000'000)));
        return change.InsertTrial(ATrial("job", 1'000'000));
      });
      ASSERT_FALSE(failed.ok());
      EXPECT_NE(failed.error().code, ErrorCode::kUnavailable) << failed.error().message;
    }
  });
  ExpectCount(*repository_, "job", kThreads / 2 * kChanges);
}

TEST_P(RepositoryConcurrency, OneOfManyWhoMakeAJobMakesIt) {
  std::atomic<int> made = 0;
  InThreads([&](int) {
    const Status written = repository_->Write([&](JobTransaction& change) -> Status {
      if (change.LockJob("job").ok()) return Error{ErrorCode::kInvalidArgument, "there"};
      return change.InsertJob(AJob("job"));
    });
    EXPECT_TRUE(written.ok() || written.error().message == "there") << written.error().message;
    if (written.ok()) ++made;
  });
  EXPECT_EQ(made, 1);
}

// Questions and changes of callers that share a commit, some of which change their mind.
TEST_P(RepositoryConcurrency, APlaceIsHeldByOneAtATime) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  std::atomic<int> holders = 0;
  std::atomic<int> held = 0;
  const auto take = [&](bool change_of_mind, std::int64_t& number) {
    return repository_->Write([&, change_of_mind](JobTransaction& change) -> Status {
      ZEUS_TRY(Job job, change.LockJob("job"));
      ZEUS_TRY(const bool taken, change.HasActiveTrial("job", RunRole::kExploring));
      if (taken) return Error{ErrorCode::kConflict, "taken"};
      Trial trial = ATrial("job", number = ++job.trials);
      trial.role = RunRole::kExploring;
      ZEUS_RETURN_IF_ERROR(change.InsertTrial(trial));
      ZEUS_RETURN_IF_ERROR(change.UpdateJob(job));
      ZEUS_TRY(const bool mine, change.HasActiveTrial("job", RunRole::kExploring));
      EXPECT_TRUE(mine);
      return change_of_mind ? Error{ErrorCode::kInvalidArgument, "changed my mind"} : Ok();
    });
  };
  const auto leave = [&](std::int64_t number) {
    return repository_->Write([&](JobTransaction& change) -> Status {
      ZEUS_TRY(const Job job, change.LockJob("job"));
      ZEUS_TRY(auto trial, change.FindTrial("job", number));
      ZEUS_TRY(const auto overdue, change.OverdueTrials("job", WallTime::max(), 10));
      EXPECT_TRUE(trial && overdue.size() == 1 && overdue[0].number == number);
      trial->status = TrialStatus::kConverged;
      return change.UpdateTrial(*trial);
    });
  };
  InThreads([&](int thread) {
    for (int i = 0; i < 25; ++i) {
      std::int64_t number = 0;
      if (!take((thread + i) % 3 == 0, number).ok()) continue;
      EXPECT_EQ(++holders, 1);
      ++held;
      --holders;
      const Status left = leave(number);
      EXPECT_TRUE(left.ok()) << left.error().message;
    }
  });
  EXPECT_GT(held, 0);
  const auto ended = repository_->ListTrials("job", {.limit = 1000});
  EXPECT_EQ(std::ssize(ended.value()), held);
}

TEST_P(RepositoryConcurrency, ReadersSeeWholeChanges) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  std::atomic<bool> writing = true;
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(CountUp(*repository_, "job").ok());
    writing = false;
  });
  std::int64_t before = 0;
  do {
    const auto job = repository_->FindJob("job");
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(job.value().trials, job.value().events);
    EXPECT_GE(job.value().trials, before);
    before = job.value().trials;
    EXPECT_TRUE(before == 0 || repository_->FindTrial("job", before).ok());
  } while (writing);
  writer.join();
}

TEST_P(RepositoryConcurrency, WhatWasWrittenIsReadByTheNext) {
  if (!GetParam().shared) GTEST_SKIP() << "each is a database of its own";
  ASSERT_TRUE(Insert(AJob("job")).ok());
  auto other = harness_.open();
  ASSERT_TRUE(other.ok()) << other.error().message;
  for (int i = 1; i <= 20; ++i) {
    JobRepository& writer = i % 2 == 0 ? *repository_ : *other.value().jobs;
    JobRepository& reader = i % 2 == 0 ? *other.value().jobs : *repository_;
    ASSERT_TRUE(CountUp(writer, "job").ok());
    EXPECT_EQ(reader.FindJob("job").value().trials, i);
  }
}

// Two repositories, as two servers have them, with nothing in common but the database. Their
// threads take the jobs in opposite orders, so that whoever waits while holding one would wait for
// ever.
TEST_P(RepositoryConcurrency, TwoServersNeitherLoseChangesNorWaitInACircle) {
  if (!GetParam().shared) GTEST_SKIP() << "each is a database of its own";
  constexpr int kJobs = 4;
  constexpr int kRounds = 4;
  auto other = harness_.open();
  ASSERT_TRUE(other.ok()) << other.error().message;
  for (int i = 0; i < kJobs; ++i) ASSERT_TRUE(Insert(AJob("job" + std::to_string(i))).ok());
  InThreads([&](int thread) {
    JobRepository& mine = thread % 2 == 0 ? *repository_ : *other.value().jobs;
    for (int i = 0; i < kJobs * kRounds; ++i) {
      const int job = thread % 2 == 0 ? i % kJobs : kJobs - 1 - i % kJobs;
      const Status counted = CountUp(mine, "job" + std::to_string(job));
      EXPECT_TRUE(counted.ok()) << counted.error().message;
    }
  });
  for (int i = 0; i < kJobs; ++i)
    ExpectCount(*repository_, "job" + std::to_string(i), kThreads * kRounds);
}

TEST_P(RepositoryConcurrency, ServersThatStartAtOnceAgreeOnTheSchema) {
  if (!GetParam().shared) GTEST_SKIP() << "each is a database of its own";
  const RepositoryHarness fresh = GetParam().make();
  InThreads([&](int thread) {
    auto opened = fresh.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const std::string id = "job" + std::to_string(thread);
    EXPECT_TRUE(opened.value()
                    .jobs->Write([&](JobTransaction& change) { return change.InsertJob(AJob(id)); })
                    .ok());
  });
  EXPECT_EQ(fresh.open().value().jobs->ListJobs({}).value().size(), std::size_t{kThreads});
}

}  // namespace zeus::testing
