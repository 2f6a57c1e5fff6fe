#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "zeus/colosseum/duel_repository.h"
#include "zeus/colosseum/testing/duel_samples.h"
#include "zeus/store/testing/repository_harness.h"

namespace zeus::colosseum {

// The promises of every DuelRepository. Include this in one file of a test program only.
class DuelConformance : public ::testing::TestWithParam<zeus::testing::RepositoryCase> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    auto opened = harness_.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    duels_ = std::move(opened.value().duels);
  }

  // A duel whose answers are complete; B took more.
  Duel Answered(const std::string& id, WallTime at = testing::kStart) {
    Duel duel = testing::ADuel(id);
    duel.created_at = at;
    duel.at(Side::kA).energy = AnswerEnergy{.energy = Joules(10), .sigma = Joules(0.1)};
    duel.at(Side::kB).energy = AnswerEnergy{.energy = Joules(30), .sigma = Joules(0.1)};
    BeginVoting(duel, at);
    EXPECT_TRUE(duels_->Insert(duel).ok());
    return duel;
  }
  // Returns whether the vote was accepted.
  static Result<bool> Cast(DuelRepository& duels, const std::string& id, Ballot ballot,
                           Choice choice) {
    bool accepted = false;
    ZEUS_RETURN_IF_ERROR(duels.Update(id, [&](Duel& duel) {
      accepted = !CastVote(duel, ballot, choice, testing::kStart);
      return Ok();
    }));
    return accepted;
  }

  zeus::testing::RepositoryHarness harness_;
  std::unique_ptr<DuelRepository> duels_;
};

TEST_P(DuelConformance, ADuelComesBackAsItWasStored) {
  Duel duel = testing::ADuel("0123-duel");
  duel.preference = "left-8b";
  duel.prompt = "Pourquoi \xF0\x9F\x98\x80 ?\n'\"";
  Contestant& a = duel.at(Side::kA);
  a.request = "r-01";
  a.prompt_tokens = 12;
  a.output_tokens = 0.1 + 0.2;
  a.duration = Seconds(1.25);
  a.energy = AnswerEnergy{.energy = Joules(1.0 / 3),
                          .sigma = Joules(0.01),
                          .prefill = Joules(0.1),
                          .decode = Joules(0.2),
                          .decode_sigma = Joules(0.005),
                          .final = true};
  a.power = {{.at = Seconds(0.5), .power = Watts(300.25)}, {.at = Seconds(1.5), .power = Watts(0)}};
  a.text = "parce que\nvoil\xC3\xA0";
  duel.at(Side::kB).absent_reason = "gpu:0 cannot be read";
  ASSERT_TRUE(duels_->Insert(duel).ok());
  const auto found = duels_->Find(duel.id);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found.value(), duel);
  EXPECT_EQ(duels_->Insert(duel).error().code, ErrorCode::kConflict);
  EXPECT_EQ(duels_->Find("nobody").error().code, ErrorCode::kNotFound);
}

TEST_P(DuelConformance, EveryStageComesBack) {
  int number = 0;
  for (const Stage& stage :
       {Stage(Answering{}), Stage(Voting{}), Stage(Weighing{Side::kB}), Stage(Revealed{}),
        Stage(Failed{"upstream ended"}), Stage(Expired{})}) {
    Duel duel = testing::ADuel(std::to_string(number++));
    ASSERT_TRUE(duels_->Insert(duel).ok());
    ASSERT_TRUE(duels_
                    ->Update(duel.id,
                             [&](Duel& stored) {
                               stored.stage = stage;
                               stored.stage_at += std::chrono::seconds(3);
                               return Ok();
                             })
                    .ok());
    const auto found = duels_->Find(duel.id);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found.value().stage, stage);
    EXPECT_EQ(found.value().stage_at, duel.stage_at + std::chrono::seconds(3));
  }
}

TEST_P(DuelConformance, VotesAndIrregularitiesAreAdded) {
  Answered("d");
  EXPECT_EQ(Cast(*duels_, "d", Ballot::kWorth, Choice::kYes).value(), false);
  EXPECT_EQ(Cast(*duels_, "d", Ballot::kResponse, Choice::kB).value(), true);
  EXPECT_EQ(Cast(*duels_, "d", Ballot::kWorth, Choice::kNo).value(), true);
  EXPECT_EQ(Cast(*duels_, "d", Ballot::kResponse, Choice::kA).value(), false);
  EXPECT_EQ(Cast(*duels_, "d", Ballot::kChange, Choice::kA).value(), true);
  const Duel duel = duels_->Find("d").value();
  ASSERT_EQ(duel.votes.size(), 3U);
  EXPECT_EQ(duel.Find(Ballot::kResponse)->choice, Choice::kB);
  EXPECT_EQ(duel.Find(Ballot::kChange)->choice, Choice::kA);
  ASSERT_EQ(duel.irregularities.size(), 2U);
  EXPECT_EQ(duel.irregularities[0].what, "vote out of turn");
  EXPECT_EQ(duel.irregularities[1].what, "second vote");
  EXPECT_TRUE(std::holds_alternative<Revealed>(duel.stage));
  EXPECT_EQ(Cast(*duels_, "x", Ballot::kChange, Choice::kA).error().code, ErrorCode::kNotFound);
}

TEST_P(DuelConformance, AChangeThatFailsChangesNothing) {
  const Duel before = Answered("d");
  const Status failed = duels_->Update("d", [](Duel& duel) -> Status {
    CastVote(duel, Ballot::kResponse, Choice::kA, testing::kStart);
    return Error{ErrorCode::kConflict, "on second thoughts"};
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(duels_->Find("d").value(), before);
}

TEST_P(DuelConformance, OfVotesAtTheSameTimeOneCounts) {
  constexpr int kThreads = 8;
  constexpr int kDuels = 5;
  for (int i = 0; i < kDuels; ++i) Answered(std::to_string(i));
  // Another process, where the database can be shared.
  auto second = GetParam().shared ? harness_.open() : Result<Store>(Store{});
  ASSERT_TRUE(second.ok()) << second.error().message;
  std::atomic<int> accepted_a = 0;
  std::atomic<int> accepted_b = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      const bool other = i % 4 < 2 && second.value().duels;
      DuelRepository& duels = other ? *second.value().duels : *duels_;
      for (int duel = 0; duel < kDuels; ++duel) {
        const Choice choice = i % 2 == 0 ? Choice::kA : Choice::kB;
        const auto outcome = Cast(duels, std::to_string(duel), Ballot::kResponse, choice);
        EXPECT_TRUE(outcome.ok()) << outcome.error().message;
        if (outcome.ok() && outcome.value()) ++(choice == Choice::kA ? accepted_a : accepted_b);
      }
    });
  for (std::thread& thread : threads) thread.join();
  int votes_for_a = 0;
  for (int i = 0; i < kDuels; ++i) {
    const Duel duel = duels_->Find(std::to_string(i)).value();
    ASSERT_EQ(duel.votes.size(), 1U);
    if (duel.votes[0].choice == Choice::kA) ++votes_for_a;
  }
  // Repeats of the vote that counts are accepted, others are not.
  EXPECT_EQ(accepted_a, votes_for_a * kThreads / 2);
  EXPECT_EQ(accepted_b, (kDuels - votes_for_a) * kThreads / 2);
}

TEST_P(DuelConformance, RevealedDuelsAreListedFromTheLatestOn) {
  for (int i = 0; i < 5; ++i) {
    Answered(std::to_string(i), testing::kStart + std::chrono::seconds(i));
    if (i == 3) continue;
    EXPECT_TRUE(Cast(*duels_, std::to_string(i), Ballot::kResponse, Choice::kA).ok());
  }
  const auto ids = [&](const DuelQuery& query) {
    std::string joined;
    const auto listed = duels_->ListRevealed(query);
    for (const Duel& duel : listed.value()) joined += duel.id;
    return joined;
  };
  EXPECT_EQ(ids({}), "4210");
  EXPECT_EQ(ids({.limit = 2}), "42");
  EXPECT_EQ(ids({.before = testing::kStart + std::chrono::seconds(2), .limit = 2}), "10");
  EXPECT_EQ(ids({.before = testing::kStart}), "");
}

TEST_P(DuelConformance, GamesAreRevealedAndExpiredDuelsWithAVote) {
  for (const char* id : {"open", "weighing", "revealed", "expired", "silent"}) Answered(id);
  EXPECT_TRUE(Cast(*duels_, "weighing", Ballot::kResponse, Choice::kB).ok());
  EXPECT_TRUE(Cast(*duels_, "revealed", Ballot::kResponse, Choice::kB).ok());
  EXPECT_TRUE(Cast(*duels_, "revealed", Ballot::kWorth, Choice::kNo).ok());
  EXPECT_TRUE(Cast(*duels_, "expired", Ballot::kResponse, Choice::kB).ok());
  const auto expire = [](Duel& duel) {
    ExpireIfOverdue(duel, testing::kStart + std::chrono::minutes(11));
    return Ok();
  };
  EXPECT_TRUE(duels_->Update("expired", expire).ok());
  EXPECT_TRUE(duels_->Update("silent", expire).ok());
  const auto games = duels_->Games();
  ASSERT_TRUE(games.ok()) << games.error().message;
  ASSERT_EQ(games.value().size(), 2U);
  for (const Game& game : games.value()) {
    EXPECT_EQ(game.models, (std::array<std::string, 2>{"left-8b", "right-70b"}));
    EXPECT_EQ(game.joules[1], 30);
    EXPECT_EQ(game.vote, Choice::kB);
    EXPECT_EQ(game.worth, game.revealed ? std::optional(Choice::kNo) : std::nullopt);
  }
}

TEST_P(DuelConformance, DuelsThatWaitForTooLongAreFound) {
  Answered("old");
  Answered("new", testing::kStart + std::chrono::minutes(5));
  Answered("done");
  EXPECT_TRUE(Cast(*duels_, "done", Ballot::kResponse, Choice::kA).ok());
  const auto overdue = duels_->Overdue(testing::kStart + std::chrono::minutes(1), 10);
  ASSERT_TRUE(overdue.ok()) << overdue.error().message;
  EXPECT_EQ(overdue.value(), std::vector<std::string>{"old"});
}

// The promises of those in an SQL database.
class DuelSqlConformance : public DuelConformance {};
TEST_P(DuelSqlConformance, TextThatOneEngineWouldRefuseIsRefusedByBoth) {
  Duel duel = testing::ADuel("d");
  duel.prompt = std::string("a\0b", 3);
  EXPECT_EQ(duels_->Insert(duel).error().code, ErrorCode::kInvalidArgument);
  duel.prompt = "\xFF";
  EXPECT_EQ(duels_->Insert(duel).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace zeus::colosseum
