#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/plan/plan_repository.h"
#include "zeus/plan/session_repository.h"
#include "zeus/plan/testing/plan_samples.h"
#include "zeus/store/testing/repository_harness.h"

namespace zeus::testing {

inline PlanRecord APlanRecord(const std::string& id) {
  return {.id = id,
          .incarnation = (std::uint64_t{1} << 53) - 1,
          .created_at = WallTime(std::chrono::microseconds(1'700'000'000'123'456))};
}

// The promises of every PlanRepository. Include this in one file of a test program only.
class PlanConformance : public ::testing::TestWithParam<RepositoryCase> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    auto opened = harness_.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    plans_ = std::move(opened.value().plans);
  }
  Status Insert(const std::string& id) { return plans_->Insert(APlanRecord(id), APlanSpec(id)); }

  RepositoryHarness harness_;
  std::unique_ptr<PlanRepository> plans_;
};

TEST_P(PlanConformance, APlanComesBackAsItWasStored) {
  PlanRecord record = APlanRecord("gpt:1.a_B-c");
  record.version = 7;
  record.pace = Seconds(0.1 + 0.2);
  PlanSpec spec = APlanSpec("gpt:1.a_B-c");
  spec.clock_changes = {.least_instructions = 2, .latency = Seconds(0.01)};
  spec.slowdown = 1.0 + 1.0 / 3.0;
  ASSERT_TRUE(plans_->Insert(record, spec).ok());

  const auto found = plans_->Find(record.id);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value(), record);
  const auto found_spec = plans_->FindSpec(found.value());
  ASSERT_TRUE(found_spec.ok()) << found_spec.error().message;
  EXPECT_EQ(found_spec.value(), spec);
}

TEST_P(PlanConformance, PlansOfANameSpaceAreCounted) {
  for (const char* id : {"a", "b", "team/a"}) ASSERT_TRUE(Insert(id).ok());
  EXPECT_EQ(plans_->Count("").value(), 2);
  EXPECT_EQ(plans_->Count("team").value(), 1);
  EXPECT_EQ(plans_->Count("x").value(), 0);
}

TEST_P(PlanConformance, AnIdOfAPlanIsTakenOnce) {
  ASSERT_TRUE(Insert("a").ok());
  const Status again = Insert("a");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
}

TEST_P(PlanConformance, WhatIsNotThereIsNotFound) {
  ASSERT_TRUE(Insert("a").ok());
  EXPECT_EQ(plans_->Find("b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(plans_->Delete("b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(plans_->Update(APlanRecord("b")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(plans_->FindSpec(APlanRecord("b")).error().code, ErrorCode::kNotFound);
}

TEST_P(PlanConformance, AChangeIsMadeOnceAndOnlyOnWhatItKnew) {
  ASSERT_TRUE(Insert("a").ok());
  PlanRecord record = plans_->Find("a").value();
  record.version = 2;
  record.pace = Seconds(3.5);
  EXPECT_TRUE(plans_->Update(record).value());
  EXPECT_FALSE(plans_->Update(record).value());

  PlanRecord found = plans_->Find("a").value();
  EXPECT_EQ(found.version, 2);
  EXPECT_EQ(found.pace, Seconds(3.5));
  EXPECT_EQ(found.revision, record.revision + 1);
  found.pace.reset();
  EXPECT_TRUE(plans_->Update(found).value());
  EXPECT_EQ(plans_->Find("a").value().pace, std::nullopt);
}

TEST_P(PlanConformance, APlanMadeAnewIsAnother) {
  ASSERT_TRUE(Insert("a").ok());
  const PlanRecord before = plans_->Find("a").value();
  ASSERT_TRUE(plans_->Delete("a").ok());
  PlanRecord anew = APlanRecord("a");
  anew.incarnation = 5;
  ASSERT_TRUE(plans_->Insert(anew, APlanSpec("a")).ok());
  EXPECT_EQ(plans_->Update(before).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(plans_->FindSpec(before).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(plans_->Find("a").value(), anew);
}

TEST_P(PlanConformance, PlansAreListedByIdPageByPage) {
  for (const char* id : {"b", "A", "c", "a-1", "a", "_"}) ASSERT_TRUE(Insert(id).ok());
  using Ids = std::vector<std::string>;
  EXPECT_EQ(plans_->List("", 100).value(), (Ids{"A", "_", "a", "a-1", "b", "c"}));
  EXPECT_EQ(plans_->List("_", 2).value(), (Ids{"a", "a-1"}));
  EXPECT_EQ(plans_->List("c", 2).value(), Ids{});
}

// Each adds one to the version, however often somebody else was quicker.
inline void CountVersionUp(PlanRepository& plans) {
  for (bool updated = false; !updated;) {
    PlanRecord record = plans.Find("a").value();
    ++record.version;
    record.pace = Seconds(static_cast<double>(record.version));
    const auto outcome = plans.Update(record);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    updated = outcome.value();
  }
}

TEST_P(PlanConformance, NoChangeOfTwoServersIsLost) {
  constexpr int kThreads = 8;
  constexpr int kChanges = 10;
  ASSERT_TRUE(Insert("a").ok());
  std::unique_ptr<PlanRepository> other;
  if (GetParam().shared) other = std::move(harness_.open().value().plans);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int change = 0; change < kChanges; ++change)
        CountVersionUp(other && i % 2 == 0 ? *other : *plans_);
    });
  for (std::thread& thread : threads) thread.join();
  const PlanRecord record = plans_->Find("a").value();
  EXPECT_EQ(record.version, 1 + kThreads * kChanges);
  EXPECT_EQ(record.pace, Seconds(1 + kThreads * kChanges));
}

inline PipelineSession ASession(const std::string& id) {
  return {.id = id,
          .data_parallel = 2,
          .pipeline_parallel = 4,
          .tensor_parallel = 1,
          .metadata = "grün \"☃\"",
          .created_at = WallTime(std::chrono::seconds(1000)),
          .used_at = WallTime(std::chrono::seconds(1000))};
}

inline SessionRank ARank(int rank) {
  return {
      .rank = rank, .data_rank = rank / 4, .pipeline_rank = rank % 4, .clocks_mhz = {1410, 210}};
}

// The promises of every SessionRepository. Include this in one file of a test program only.
class SessionConformance : public ::testing::TestWithParam<RepositoryCase> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    auto opened = harness_.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    sessions_ = std::move(opened.value().sessions);
    ASSERT_TRUE(sessions_->Insert(ASession("a")).ok());
  }

  RepositoryHarness harness_;
  std::unique_ptr<SessionRepository> sessions_;
};

TEST_P(SessionConformance, ASessionComesBackAsItWasStored) {
  EXPECT_EQ(sessions_->Find("a").value(), ASession("a"));
  EXPECT_EQ(sessions_->Insert(ASession("a")).error().code, ErrorCode::kConflict);
}

TEST_P(SessionConformance, WithoutASessionThereIsNothing) {
  EXPECT_EQ(sessions_->Find("b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sessions_->Ranks("b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sessions_->AddRank("b", ARank(0)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sessions_->Measurements("b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sessions_->PutMeasurement("b", {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sessions_->EndRound(ASession("b")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(sessions_->MarkUsed("b", {}).error().code, ErrorCode::kNotFound);
}

TEST_P(SessionConformance, ARankRegistersOnceAndMaySaySoAgain) {
  ASSERT_TRUE(sessions_->AddRank("a", ARank(3)).ok());
  ASSERT_TRUE(sessions_->AddRank("a", ARank(1)).ok());
  EXPECT_TRUE(sessions_->AddRank("a", ARank(3)).ok());
  SessionRank impostor = ARank(3);
  impostor.pipeline_rank = 0;
  EXPECT_EQ(sessions_->AddRank("a", impostor).error().code, ErrorCode::kConflict);
  EXPECT_EQ(sessions_->Ranks("a").value(), (std::vector{ARank(1), ARank(3)}));
}

TEST_P(SessionConformance, APlaceIsTakenByOneRank) {
  ASSERT_TRUE(sessions_->AddRank("a", ARank(3)).ok());
  SessionRank second = ARank(3);
  second.rank = 5;
  const Status refused = sessions_->AddRank("a", second);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(refused.error().message,
            "rank: 5 cannot be dp_rank 0, pp_rank 3, tp_rank 0: rank 3 is");
  EXPECT_EQ(sessions_->Ranks("a").value(), (std::vector{ARank(3)}));
  EXPECT_TRUE(sessions_->AddRank("a", ARank(5)).ok());
}

TEST_P(SessionConformance, NoRankOfManyAtOnceIsLost) {
  constexpr int kRanks = 8;
  std::unique_ptr<SessionRepository> other;
  if (GetParam().shared) other = std::move(harness_.open().value().sessions);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      SessionRepository& mine = other && rank % 2 == 0 ? *other : *sessions_;
      const Status added = mine.AddRank("a", ARank(rank));
      EXPECT_TRUE(added.ok()) << added.error().message;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sessions_->Ranks("a").value().size(), std::size_t{kRanks});
}

TEST_P(SessionConformance, WhatARankMeasuredLastCounts) {
  ASSERT_TRUE(sessions_->PutMeasurement("a", {.round = 0, .rank = 1, .points = "old\n"}).ok());
  ASSERT_TRUE(sessions_->PutMeasurement("a", {.round = 1, .rank = 0, .points = "later\n"}).ok());
  ASSERT_TRUE(sessions_->PutMeasurement("a", {.round = 0, .rank = 1, .points = "new\n"}).ok());
  EXPECT_EQ(sessions_->Measurements("a").value(),
            (std::vector<SessionMeasurement>{{.round = 0, .rank = 1, .points = "new\n"},
                                             {.round = 1, .rank = 0, .points = "later\n"}}));
}

TEST_P(SessionConformance, ARoundEndsOnce) {
  PipelineSession session = sessions_->Find("a").value();
  session.plan_id = "first";
  ASSERT_TRUE(sessions_->EndRound(session).ok());
  session.plan_id = "second";
  ASSERT_TRUE(sessions_->EndRound(session).ok());
  EXPECT_EQ(sessions_->Find("a").value().round, 1);
  EXPECT_EQ(sessions_->Find("a").value().plan_id, "first");
}

TEST_P(SessionConformance, MeasuringStartsOverUnlessTheRoundHasEnded) {
  PipelineSession session = sessions_->Find("a").value();
  ASSERT_TRUE(sessions_->PutMeasurement("a", {.round = 0, .rank = 1, .points = "x\n"}).ok());
  ASSERT_TRUE(sessions_->EndRound(session).ok());
  ASSERT_TRUE(sessions_->StartOver(session).ok());
  EXPECT_EQ(sessions_->Find("a").value().round, 1);
  EXPECT_EQ(sessions_->Measurements("a").value().size(), 1U);
  session.round = 1;
  ASSERT_TRUE(sessions_->StartOver(session).ok());
  EXPECT_EQ(sessions_->Find("a").value().round, 0);
  EXPECT_TRUE(sessions_->Measurements("a").value().empty());
}

TEST_P(SessionConformance, WhatNobodyUsesIsDeleted) {
  ASSERT_TRUE(sessions_->Insert(ASession("b")).ok());
  ASSERT_TRUE(sessions_->AddRank("a", ARank(0)).ok());
  ASSERT_TRUE(sessions_->PutMeasurement("a", {.points = "x"}).ok());
  ASSERT_TRUE(sessions_->MarkUsed("b", WallTime(std::chrono::seconds(2000))).ok());
  const WallTime between(std::chrono::seconds(1500));
  EXPECT_EQ(sessions_->DeleteUnused(between, 0).value(), 0);
  EXPECT_EQ(sessions_->DeleteUnused(between, 10).value(), 1);
  EXPECT_EQ(sessions_->DeleteUnused(between, 10).value(), 0);
  EXPECT_EQ(sessions_->Find("a").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(sessions_->Find("b").ok());
  ASSERT_TRUE(sessions_->Insert(ASession("a")).ok());
  EXPECT_TRUE(sessions_->Ranks("a").value().empty());
  EXPECT_TRUE(sessions_->Measurements("a").value().empty());
}

}  // namespace zeus::testing
