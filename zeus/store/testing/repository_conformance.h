#pragma once

#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "zeus/store/testing/repository_harness.h"

namespace zeus::testing {

// The promises of every JobRepository to one caller. Include this in one file of a test program
// only:
//   INSTANTIATE_TEST_SUITE_P(Sqlite, RepositoryConformance, ::testing::Values(…),
//                            NameOfRepositoryCase());
class RepositoryConformance : public RepositoryTest {
 protected:
  std::vector<std::string> Ids(const JobQuery& query) {
    std::vector<std::string> ids;
    const auto jobs = repository_->ListJobs(query);
    EXPECT_TRUE(jobs.ok());
    if (jobs.ok())
      for (const Job& job : jobs.value()) ids.push_back(job.spec.id);
    return ids;
  }
  std::vector<std::int64_t> Numbers(const TrialQuery& query) {
    std::vector<std::int64_t> numbers;
    const auto trials = repository_->ListTrials("job", query);
    EXPECT_TRUE(trials.ok());
    if (trials.ok())
      for (const Trial& trial : trials.value()) numbers.push_back(trial.number);
    return numbers;
  }
};

using Strings = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

TEST_P(RepositoryConformance, AnswersWhenAsked) { EXPECT_TRUE(repository_->Ping().ok()); }

TEST_P(RepositoryConformance, NameSpacesAreCountedApart) {
  for (const char* id : {"a", "team", "team-x", "z", "team/a", "team/b", "team0/a"}) {
    Job job = AJob(id);
    job.trials = 3;
    ASSERT_TRUE(Insert(job).ok());
  }
  const auto jobs = [&](const char* name) { return repository_->Count(name).value().jobs; };
  EXPECT_EQ(jobs(""), 4);
  EXPECT_EQ(jobs("team"), 2);
  EXPECT_EQ(jobs("team0"), 1);
  EXPECT_EQ(jobs("te"), 0);
  EXPECT_EQ(repository_->Count("team").value().trials, 6);
  EXPECT_EQ(repository_->Count("te").value().trials, 0);
}

TEST_P(RepositoryConformance, TheLatestLeaseTickIsKept) {
  EXPECT_FALSE(repository_->FindLeaseTick().value());
  const auto keep = [&](const LeaseTick& tick) {
    return repository_->Write([&](JobTransaction& change) { return change.KeepLeaseTick(tick); });
  };
  const LeaseTick first{.lease = WallTime(std::chrono::seconds(100)),
                        .wall = WallTime(std::chrono::seconds(7)),
                        .boot = {.boot = "this", .since = Seconds(0.1 + 0.2)}};
  ASSERT_TRUE(keep(first).ok());
  EXPECT_EQ(repository_->FindLeaseTick().value(), first);
  LeaseTick earlier = first;
  earlier.lease -= std::chrono::microseconds(1);
  ASSERT_TRUE(keep(earlier).ok());
  EXPECT_EQ(repository_->FindLeaseTick().value(), first);
  LeaseTick later = first;
  later.lease += std::chrono::microseconds(1);
  later.wall -= std::chrono::seconds(5);  // The time of day may go back.
  ASSERT_TRUE(keep(later).ok());
  EXPECT_EQ(repository_->FindLeaseTick().value(), later);
}

TEST_P(RepositoryConformance, AJobComesBackAsItWasStored) {
  Job job = AJob("job:1.a_B-c");
  job.spec.labels = {{"équipe", "日本語 \"quoted\" ☃"}, {"empty", ""}};
  job.spec.deadline = Seconds(0.1);
  job.spec.eta = 1.0 / 3.0;
  job.recurrences = 7;
  job.trials = 9;
  job.events = 11;
  job.policy_state = {{"mean", 0.1 + 0.2}, {"counts", {1, 2, 3}}, {"text", "☃"}};
  job.least_cost = Joules(1e300 / 3.0);
  job.least_cost_batch_size = 128;
  ASSERT_TRUE(Insert(job).ok());

  const auto found = repository_->FindJob("job:1.a_B-c");

  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value().spec, job.spec);
  EXPECT_EQ(found.value().seed, job.seed);
  EXPECT_EQ(found.value().created_at, job.created_at);
  EXPECT_EQ(found.value().recurrences, 7);
  EXPECT_EQ(found.value().trials, 9);
  EXPECT_EQ(found.value().events, 11);
  EXPECT_EQ(found.value().policy_state.dump(), job.policy_state.dump());
  EXPECT_EQ(found.value().least_cost, job.least_cost);
  EXPECT_EQ(found.value().least_cost_batch_size, 128);
}

TEST_P(RepositoryConformance, AnUpdateChangesAllButWhatAJobIs) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  ASSERT_TRUE(repository_
                  ->Write([](JobTransaction& change) -> Status {
                    ZEUS_TRY(Job job, change.LockJob("job"));
                    job.recurrences = 1;
                    job.trials = 2;
                    job.events = 3;
                    job.policy_state = {{"a", 1}};
                    job.least_cost = Joules(5.0);
                    job.least_cost_batch_size = 32;
                    ZEUS_RETURN_IF_ERROR(change.UpdateJob(job));
                    ZEUS_TRY(const Job again, change.LockJob("job"));
                    return again.trials == 2 ? Ok() : Error{ErrorCode::kInternal, "not seen"};
                  })
                  .ok());

  const auto job = repository_->FindJob("job");

  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job.value().seed, AJob("job").seed);
  EXPECT_EQ(job.value().recurrences, 1);
  EXPECT_EQ(job.value().trials, 2);
  EXPECT_EQ(job.value().events, 3);
  EXPECT_EQ(job.value().policy_state, (Json{{"a", 1}}));
  EXPECT_EQ(job.value().least_cost, Joules(5.0));
  EXPECT_EQ(job.value().least_cost_batch_size, 32);
}

TEST_P(RepositoryConformance, AStateOfAMegabyteComesBackByteForByte) {
  Job job = AJob("job");
  for (int i = 0; i < 50'000; ++i) job.policy_state["values"].push_back(1.0 / (i + 1));
  ASSERT_GT(job.policy_state.dump().size(), 900'000U);
  ASSERT_TRUE(Insert(job).ok());

  const auto found = repository_->FindJob("job");

  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found.value().policy_state.dump() == job.policy_state.dump());
}

TEST_P(RepositoryConformance, WhatIsNotThereIsNotFound) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  const auto lock = [](JobTransaction& change) -> Status {
    ZEUS_TRY(const Job job, change.LockJob("nobody"));
    return Ok();
  };
  const auto remove = [](JobTransaction& change) { return change.DeleteJob("nobody"); };

  EXPECT_EQ(repository_->FindJob("nobody").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(repository_->FindTrial("job", 1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(repository_->Write(lock).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(repository_->Write(remove).error().code, ErrorCode::kNotFound);
}

// PostgreSQL would cut a text there, and touch the job of the first half.
TEST_P(RepositoryConformance, AZeroByteIsNotTheEndOfAnId) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  const std::string longer("job\0x", 5);
  const auto remove = [&](JobTransaction& change) { return change.DeleteJob(longer); };

  EXPECT_FALSE(repository_->FindJob(longer).ok());
  EXPECT_FALSE(repository_->Write(remove).ok());
  EXPECT_TRUE(repository_->FindJob("job").ok());
}

TEST_P(RepositoryConformance, AnIdIsTakenOnce) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  const Status again = Insert(AJob("job"));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
}

TEST_P(RepositoryConformance, ATrialComesBackAsItWasStored) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  Trial trial = ATrial("job", 1);
  ASSERT_TRUE(Insert(trial).ok());
  trial.recurrence = 3;
  trial.attempt = 2;
  trial.role = RunRole::kExploring;
  trial.status = TrialStatus::kStopped;
  trial.request_id = "request";
  trial.lease_until = WallTime(std::chrono::microseconds(1'060'000'001));
  trial.ended_at = WallTime(std::chrono::seconds(1050));
  trial.epochs = 4;
  trial.time = Seconds(0.1);
  trial.energy = Joules(1.0 / 3.0);
  trial.cost = Joules(std::numeric_limits<double>::infinity());
  trial.metric = -std::numeric_limits<double>::infinity();
  trial.epoch_cost = Joules(5e-324);
  trial.power_limit = Watts(125.0);
  trial.unmeasured = true;
  trial.why = "because";
  trial.reason = "budget: 雪\n\"quoted\"";
  ASSERT_TRUE(
      repository_->Write([&](JobTransaction& change) { return change.UpdateTrial(trial); }).ok());

  const auto found = repository_->FindTrial("job", 1);

  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value().recurrence, 3);
  EXPECT_EQ(found.value().attempt, 2);
  EXPECT_EQ(found.value().batch_size, 64);
  EXPECT_EQ(found.value().role, RunRole::kExploring);
  EXPECT_EQ(found.value().gpu_model, "V100");
  EXPECT_EQ(found.value().max_power, Watts(300.0));
  EXPECT_EQ(found.value().status, TrialStatus::kStopped);
  EXPECT_EQ(found.value().request_id, "request");
  EXPECT_EQ(found.value().started_at, trial.started_at);
  EXPECT_EQ(found.value().lease, Seconds(60.0));
  EXPECT_EQ(found.value().lease_until, trial.lease_until);
  EXPECT_EQ(found.value().ended_at, trial.ended_at);
  EXPECT_EQ(found.value().epochs, 4);
  EXPECT_EQ(found.value().time, trial.time);
  EXPECT_EQ(found.value().energy, trial.energy);
  EXPECT_EQ(found.value().cost, trial.cost);
  EXPECT_EQ(found.value().metric, trial.metric);
  EXPECT_EQ(found.value().epoch_cost, trial.epoch_cost);
  EXPECT_EQ(found.value().power_limit, trial.power_limit);
  EXPECT_FALSE(found.value().undisturbed);
  EXPECT_FALSE(found.value().shared);
  EXPECT_TRUE(found.value().unmeasured);
  EXPECT_EQ(found.value().why, "because");
  EXPECT_EQ(found.value().reason, trial.reason);
}

TEST_P(RepositoryConformance, TrialsAreFoundWithinAChange) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  ASSERT_TRUE(Insert(AJob("other")).ok());
  const Status found = repository_->Write([](JobTransaction& change) -> Status {
    for (std::int64_t number = 1; number <= 3; ++number) {
      Trial trial = ATrial("job", number);
      trial.recurrence = number == 3 ? 0 : number - 1;
      trial.attempt = number == 3 ? 1 : 0;
      trial.role = number == 2 ? RunRole::kExploring : RunRole::kExploiting;
      trial.request_id = number == 1 ? "" : "request " + std::to_string(number);
      ZEUS_RETURN_IF_ERROR(change.InsertTrial(trial));
    }
    ZEUS_TRY(const auto second, change.FindTrial("job", 2));
    EXPECT_TRUE(second && second->role == RunRole::kExploring);
    ZEUS_TRY(const auto none, change.FindTrial("job", 4));
    EXPECT_FALSE(none);
    ZEUS_TRY(const auto third, change.FindTrialByRequest("job", "request 3"));
    EXPECT_TRUE(third && third->number == 3);
    ZEUS_TRY(const auto elsewhere, change.FindTrialByRequest("other", "request 3"));
    EXPECT_FALSE(elsewhere);
    ZEUS_TRY(const auto tries, change.TrialsOfRecurrence("job", 0));
    EXPECT_TRUE(tries.size() == 2 && tries[0].number == 1 && tries[1].number == 3);
    ZEUS_TRY(const bool exploring, change.HasActiveTrial("job", RunRole::kExploring));
    EXPECT_TRUE(exploring);
    ZEUS_TRY(const bool concurrent, change.HasActiveTrial("job", RunRole::kConcurrent));
    EXPECT_FALSE(concurrent);
    return Ok();
  });
  EXPECT_TRUE(found.ok()) << found.error().message;
}

TEST_P(RepositoryConformance, TrialsAreOverdueWhenTheirLeaseHasEnded) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  ASSERT_TRUE(Insert(AJob("idle")).ok());
  for (std::int64_t number = 1; number <= 4; ++number) {
    Trial trial = ATrial("job", number);
    trial.lease_until = WallTime(std::chrono::seconds(100 * number));
    if (number == 2) trial.status = TrialStatus::kConverged;
    if (number == 3) trial.status = TrialStatus::kReporting;
    ASSERT_TRUE(Insert(trial).ok());
  }
  const WallTime now(std::chrono::seconds(400));
  EXPECT_TRUE(repository_
                  ->Write([&](JobTransaction& change) -> Status {
                    ZEUS_TRY(const auto overdue, change.OverdueTrials("job", now, 10));
                    EXPECT_TRUE(overdue.size() == 2 && overdue[0].number == 1 &&
                                overdue[1].number == 3);
                    ZEUS_TRY(const auto one, change.OverdueTrials("job", now, 1));
                    EXPECT_TRUE(one.size() == 1 && one[0].number == 1);
                    return Ok();
                  })
                  .ok());
  EXPECT_EQ(repository_->JobsWithOverdueTrials(now, 10).value(), Strings{"job"});
  EXPECT_EQ(repository_->JobsWithOverdueTrials(WallTime(std::chrono::seconds(100)), 10).value(),
            Strings{});
  EXPECT_EQ(repository_->JobsWithOverdueTrials(now, 0).value(), Strings{});
}

TEST_P(RepositoryConformance, ARequestStartsOneTrial) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  Trial trial = ATrial("job", 1);
  trial.request_id = "request";
  ASSERT_TRUE(Insert(trial).ok());
  trial.number = 2;
  const Status again = Insert(trial);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_EQ(Numbers({}), Integers{1});
}

TEST_P(RepositoryConformance, JobsAreListedByIdPageByPage) {
  for (const char* id : {"b", "A", "c", "a-1", "a", "_"}) ASSERT_TRUE(Insert(AJob(id)).ok());
  EXPECT_EQ(Ids({}), (Strings{"A", "_", "a", "a-1", "b", "c"}));
  EXPECT_EQ(Ids({.limit = 2}), (Strings{"A", "_"}));
  EXPECT_EQ(Ids({.after = "_", .limit = 2}), (Strings{"a", "a-1"}));
  EXPECT_EQ(Ids({.after = "c"}), Strings{});
}

TEST_P(RepositoryConformance, JobsAreFoundByTheirLabels) {
  for (const auto& [id, value] : {std::pair("one", "blue"), {"two", "grün"}, {"three", "grün"}}) {
    Job job = AJob(id);
    job.spec.labels = {{"colour", value}, {std::string("is ") + id, "yes"}};
    ASSERT_TRUE(Insert(job).ok());
  }
  ASSERT_TRUE(Insert(AJob("plain")).ok());
  EXPECT_EQ(Ids({.label = "colour"}), (Strings{"one", "three", "two"}));
  EXPECT_EQ(Ids({.label = "colour", .label_value = "grün"}), (Strings{"three", "two"}));
  EXPECT_EQ(Ids({.after = "three", .label = "colour", .label_value = "grün"}), Strings{"two"});
  EXPECT_EQ(Ids({.label = "is one"}), Strings{"one"});
  EXPECT_EQ(Ids({.label = "nothing"}), Strings{});
}

TEST_P(RepositoryConformance, TrialsAreListedByNumberAndStatus) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  for (const std::int64_t number : {10, 2, 1}) {
    Trial trial = ATrial("job", number);
    if (number == 2) trial.status = TrialStatus::kConverged;
    ASSERT_TRUE(Insert(trial).ok());
  }
  EXPECT_EQ(Numbers({}), (Integers{1, 2, 10}));
  EXPECT_EQ(Numbers({.after = 1, .limit = 1}), Integers{2});
  EXPECT_EQ(Numbers({.status = TrialStatus::kConverged}), Integers{2});
  EXPECT_EQ(Numbers({.status = TrialStatus::kExpired}), Integers{});
}

TEST_P(RepositoryConformance, EventsAreListedInOrder) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  ASSERT_TRUE(repository_
                  ->Write([](JobTransaction& change) -> Status {
                    for (std::int64_t i = 1; i <= 12; ++i)
                      ZEUS_RETURN_IF_ERROR(change.AppendEvent(AnEvent("job", i)));
                    JobEvent last = AnEvent("job", 13);
                    last.kind = EventKind::kEpochCostLearned;
                    last.trial = std::nullopt;
                    last.detail = {{"z", 1}, {"a", {{"☃", 0.1}}}};
                    return change.AppendEvent(last);
                  })
                  .ok());

  const auto events = repository_->ListEvents("job", 9, 100);

  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events.value().size(), 4U);
  EXPECT_EQ(events.value()[0].sequence, 10);
  EXPECT_EQ(events.value()[0].kind, EventKind::kTrialStarted);
  EXPECT_EQ(events.value()[0].trial, 10);
  EXPECT_EQ(events.value()[0].at, AnEvent("job", 10).at);
  EXPECT_EQ(events.value()[3].kind, EventKind::kEpochCostLearned);
  EXPECT_EQ(events.value()[3].trial, std::nullopt);
  EXPECT_EQ(events.value()[3].detail.dump(), R"({"z":1,"a":{"☃":0.1}})");
  EXPECT_EQ(repository_->ListEvents("job", 0, 5).value().size(), 5U);
  EXPECT_EQ(repository_->ListEvents("nobody", 0, 5).value().size(), 0U);
}

TEST_P(RepositoryConformance, ADeletedJobLeavesNothingBehind) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  ASSERT_TRUE(Insert(AJob("other")).ok());
  ASSERT_TRUE(CountUp(*repository_, "job").ok());
  ASSERT_TRUE(CountUp(*repository_, "other").ok());
  const auto remove = [](JobTransaction& change) { return change.DeleteJob("job"); };
  ASSERT_TRUE(repository_->Write(remove).ok());

  EXPECT_EQ(Ids({}), Strings{"other"});
  EXPECT_EQ(Numbers({}), Integers{});
  EXPECT_EQ(repository_->ListEvents("job", 0, 5).value().size(), 0U);
  ASSERT_TRUE(Insert(AJob("job")).ok());
  EXPECT_EQ(Numbers({}), Integers{});
  ExpectCount(*repository_, "other", 1);
}

TEST_P(RepositoryConformance, AChangeThatFailsLeavesNothing) {
  ASSERT_TRUE(Insert(AJob("job")).ok());
  const Status failed = repository_->Write([](JobTransaction& change) -> Status {
    ZEUS_TRY(Job job, change.LockJob("job"));
    job.trials = 1;
    ZEUS_RETURN_IF_ERROR(change.UpdateJob(job));
    ZEUS_RETURN_IF_ERROR(change.InsertTrial(ATrial("job", 1)));
    ZEUS_RETURN_IF_ERROR(change.AppendEvent(AnEvent("job", 1)));
    ZEUS_RETURN_IF_ERROR(change.InsertJob(AJob("second")));
    return Error{ErrorCode::kInvalidArgument, "changed my mind"};
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(failed.error().message, "changed my mind");
  ExpectCount(*repository_, "job", 0);
  EXPECT_EQ(Ids({}), Strings{"job"});
}

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
