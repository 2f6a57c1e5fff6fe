#include "zeus/colosseum/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/colosseum/testing/memory_duel_repository.h"
#include "zeus/colosseum/testing/scripted_host.h"

namespace zeus::colosseum {
namespace arena_test {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

class ArenaTest : public ::testing::Test {
 protected:
  explicit ArenaTest(ArenaOptions options = {})
      : arena_(std::make_unique<Arena>(
            repository_, host_, clock_, [this] { return ++entropy_; }, std::move(options))) {}
  ~ArenaTest() override { host_.EndAll(); }

  std::string Begin(const Challenge& challenge = {.prompt = "why?"}) {
    auto begun = arena_->Begin(challenge);
    if (auto* refusal = std::get_if<Refusal>(&begun)) {
      ADD_FAILURE() << refusal->message;
      return {};
    }
    return std::get<std::string>(begun);
  }
  Refusal Refused(const Challenge& challenge) {
    auto begun = arena_->Begin(challenge);
    if (auto* refusal = std::get_if<Refusal>(&begun)) return *refusal;
    ADD_FAILURE() << "a duel has begun";
    return {};
  }
  std::shared_ptr<Follower> Follow(const std::string& id, Follower::Position from = {}) {
    auto followed = arena_->Follow(id, from, [this] { ++notified_; });
    return std::get<std::shared_ptr<Follower>>(followed);
  }
  Duel Stored(const std::string& id) { return repository_.Find(id).value(); }
  // Both answers, A with the first number of joules.
  std::string Answered(double a = 10, double b = 50) {
    const std::size_t first = host_.asked.size();
    const std::string id = Begin();
    host_.Complete(first, "answer A", a);
    host_.Complete(first + 1, "answer B", b);
    return id;
  }
  void Advance(Seconds time) {
    arena_->Step();
    clock_.Advance(time);
    arena_->Step();
  }

  VirtualClock clock_;
  testing::MemoryDuelRepository repository_;
  testing::ScriptedHost host_;
  std::uint64_t entropy_ = 0;
  int notified_ = 0;
  std::unique_ptr<Arena> arena_;
};

TEST_F(ArenaTest, ADuelRunsFromThePromptToTheReveal) {
  const std::string id = Begin();
  ASSERT_EQ(host_.asked.size(), 2U);
  EXPECT_NE(host_.asked[0].question.model, host_.asked[1].question.model);
  EXPECT_EQ(host_.asked[0].question.prompt, "why?");
  EXPECT_EQ(host_.asked[0].question.most_tokens, 512);
  const auto follower = Follow(id);
  host_.asked[0].listener->OnText("Because ");
  host_.asked[1].listener->OnText("It ");
  Advance(seconds(1));
  Follower::News news = follower->Pull();
  EXPECT_EQ(news.text[0], "Bec");
  EXPECT_EQ(news.text[1], "It ");
  EXPECT_EQ(news.stage, "");
  host_.Complete(0, "of this.", 10);
  EXPECT_TRUE(std::holds_alternative<Answering>(Stored(id).stage));
  host_.Complete(1, "is so.", 50);
  EXPECT_TRUE(std::holds_alternative<Voting>(Stored(id).stage));
  Advance(seconds(1));
  news = follower->Pull();
  EXPECT_EQ(news.text[0], "ause of this.");
  EXPECT_EQ(news.text[1], "is so.");
  EXPECT_EQ(news.stage, "voting");
  follower->Leave();
  const auto voted = arena_->Cast(id, Ballot::kResponse, Choice::kA);
  ASSERT_TRUE(std::holds_alternative<Duel>(voted));
  EXPECT_TRUE(std::holds_alternative<Revealed>(std::get<Duel>(voted).stage));
  const auto board = std::get<0>(arena_->Leaderboard());
  ASSERT_EQ(board.size(), 2U);
  EXPECT_EQ(board[0].wins, 1);
}

TEST_F(ArenaTest, TextIsStoredOnlyWithConsent) {
  const std::string id = Answered();
  EXPECT_EQ(Stored(id).prompt, "");
  EXPECT_EQ(Stored(id).at(Side::kA).text, "");
  EXPECT_EQ(Stored(id).at(Side::kA).energy->energy, Joules(10));
}

class ConsentTest : public ArenaTest {
 protected:
  ConsentTest() : ArenaTest({.store_text = true}) {}
};
TEST_F(ConsentTest, PromptAndAnswersAreStored) {
  const std::string id = Answered();
  EXPECT_EQ(Stored(id).prompt, "why?");
  EXPECT_EQ(Stored(id).at(Side::kB).text, "answer B");
}

TEST_F(ArenaTest, OneFailureFailsTheDuelAndSaysNotWhose) {
  const std::string id = Begin();
  const auto follower = Follow(id);
  host_.asked[0].listener->OnText("Because");
  host_.End(1, Error{ErrorCode::kUnavailable, "http://secret:8000 ended"});
  EXPECT_TRUE(host_.asked[0].aborted);
  Advance(seconds(1));
  const Follower::News news = follower->Pull();
  EXPECT_EQ(news.stage, "failed");
  const Duel duel = Stored(id);
  ASSERT_TRUE(std::holds_alternative<Failed>(duel.stage));
  EXPECT_THAT(std::get<Failed>(duel.stage).reason, HasSubstr("secret"));
  const auto refusal = std::get<Refusal>(arena_->Cast(id, Ballot::kResponse, Choice::kA));
  EXPECT_EQ(refusal.kind, Refusal::Kind::kGone);
  EXPECT_THAT(refusal.message, ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(arena_->counts().failed, 1U);
}

TEST_F(ArenaTest, APromptMustBeSensible) {
  EXPECT_EQ(Refused({.prompt = " \n"}).kind, Refusal::Kind::kInvalid);
  EXPECT_THAT(Refused({.prompt = std::string(8193, 'x')}).message, HasSubstr("8192 are the most"));
  EXPECT_EQ(Refused({.prompt = std::string("a\0b", 3)}).kind, Refusal::Kind::kInvalid);
  EXPECT_EQ(Refused({.prompt = "why?", .preference = "gpt"}).kind, Refusal::Kind::kInvalid);
  EXPECT_TRUE(host_.asked.empty());
}

TEST_F(ArenaTest, WithoutTheGatewayNothingBegins) {
  host_.reachable = false;
  const Refusal refusal = Refused({.prompt = "why?"});
  EXPECT_EQ(refusal.kind, Refusal::Kind::kUnavailable);
  EXPECT_THAT(refusal.message, ::testing::Not(HasSubstr("secret")));
  host_.reachable = true;
  host_.models = {"only"};
  EXPECT_THAT(Refused({.prompt = "why?"}).message, HasSubstr("needs two models"));
  repository_.Break(Error{ErrorCode::kUnavailable, "/secret/zeus.db: disk full"});
  host_.models = {"x", "y"};
  EXPECT_THAT(Refused({.prompt = "why?"}).message, ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(arena_->counts().answering, 0U);
}

class SmallArenaTest : public ArenaTest {
 protected:
  SmallArenaTest() : ArenaTest({.most_duels = 3, .most_per_caller = 2}) {}
};
TEST_F(SmallArenaTest, TooManyDuelsAreRefused) {
  Begin({.prompt = "why?", .caller = "x"});
  Begin({.prompt = "why?", .caller = "x"});
  EXPECT_THAT(Refused({.prompt = "why?", .caller = "x"}).message, HasSubstr("your address"));
  Begin({.prompt = "why?", .caller = "y"});
  const Refusal refusal = Refused({.prompt = "why?", .caller = "z"});
  EXPECT_EQ(refusal.kind, Refusal::Kind::kOverloaded);
  EXPECT_EQ(arena_->counts().overloaded, 2U);
  // Duels whose answers are complete make room.
  host_.Complete(0, "a", 1);
  host_.Complete(1, "b", 1);
  Begin({.prompt = "why?", .caller = "z"});
}

TEST_F(ArenaTest, ADuelThatNobodyFollowsIsEnded) {
  const std::string id = Begin();
  const auto follower = Follow(id);
  Advance(seconds(60));
  EXPECT_FALSE(host_.asked[0].aborted);
  follower->Leave();
  Advance(seconds(19));
  EXPECT_FALSE(host_.asked[0].aborted);
  Advance(seconds(2));
  EXPECT_TRUE(host_.asked[0].aborted);
  EXPECT_TRUE(host_.asked[1].aborted);
  ASSERT_TRUE(std::holds_alternative<Failed>(Stored(id).stage));
  EXPECT_EQ(std::get<Failed>(Stored(id).stage).reason, "nobody followed it");
  EXPECT_EQ(arena_->counts().abandoned, 1U);
}

TEST_F(ArenaTest, AnswersThatNeverEndAreEnded) {
  const std::string id = Begin();
  const auto follower = Follow(id);
  Advance(seconds(301));
  EXPECT_TRUE(host_.asked[0].aborted);
  EXPECT_EQ(std::get<Failed>(Stored(id).stage).reason, "the answers took too long");
}

TEST_F(ArenaTest, AClientThatComesBackGoesOnWhereItWas) {
  const std::string id = Begin();
  auto follower = Follow(id);
  host_.asked[0].listener->OnText("caf\xC3\xA9 noir");
  host_.asked[1].listener->OnText("0123456789");
  Advance(seconds(1));
  EXPECT_EQ(follower->Pull().text[0], "caf\xC3\xA9 noir");
  follower->Leave();
  follower = Follow(id, {4, 8});  // In the middle of a character.
  Follower::News news = follower->Pull();
  EXPECT_EQ(news.text[0], " noir");
  EXPECT_EQ(news.text[1], "8");
  EXPECT_EQ(Follow(id, {999, 999})->Pull().text[0], "");
  EXPECT_GT(notified_, 0);
}

TEST_F(ArenaTest, AnAnsweredDuelCanBeFollowedAgainForAWhile) {
  const std::string id = Answered();
  for (int i = 0; i < 20; ++i) Advance(milliseconds(50));
  EXPECT_EQ(Follow(id)->Pull().text[0], "answer A");
  arena_->Step();
}

TEST_F(ArenaTest, AForgottenDuelSaysItsStage) {
  const std::string id = Answered();
  Advance(seconds(61));
  Advance(seconds(1));
  const Follower::News news = Follow(id)->Pull();
  EXPECT_EQ(news.stage, "voting");
  EXPECT_EQ(news.text[0], "");
  EXPECT_TRUE(std::holds_alternative<Refusal>(arena_->Follow("x", {}, [] {})));
}

TEST_F(ArenaTest, TheReferencesTwoCallsAreOneDuel) {
  const Challenge challenge{.prompt = "why?", .id = "ref:1"};
  EXPECT_EQ(std::get<std::string>(arena_->BeginOrJoin(challenge)), "ref:1");
  EXPECT_EQ(std::get<std::string>(arena_->BeginOrJoin(challenge)), "ref:1");
  EXPECT_EQ(host_.asked.size(), 2U);
  const auto other = arena_->BeginOrJoin({.prompt = "what?", .id = "ref:1"});
  EXPECT_EQ(std::get<Refusal>(other).kind, Refusal::Kind::kConflict);
}

TEST_F(ArenaTest, OldDuelsExpire) {
  const std::string id = Answered();
  clock_.Advance(minutes(9));
  arena_->Sweep();
  EXPECT_TRUE(std::holds_alternative<Voting>(Stored(id).stage));
  clock_.Advance(minutes(2));
  arena_->Sweep();
  EXPECT_TRUE(std::holds_alternative<Expired>(Stored(id).stage));
  EXPECT_EQ(std::get<Refusal>(arena_->Cast(id, Ballot::kResponse, Choice::kA)).kind,
            Refusal::Kind::kGone);
}

TEST_F(ArenaTest, AVoteMustSuitItsBallot) {
  const std::string id = Answered();
  EXPECT_EQ(std::get<Refusal>(arena_->Cast(id, Ballot::kResponse, Choice::kYes)).kind,
            Refusal::Kind::kInvalid);
  EXPECT_EQ(std::get<Refusal>(arena_->Cast("x", Ballot::kResponse, Choice::kA)).kind,
            Refusal::Kind::kUnknown);
}

TEST_F(ArenaTest, TheLeaderboardIsNotComputedForEveryCaller) {
  Answered();
  for (int i = 0; i < 10; ++i) (void)arena_->Leaderboard();
  EXPECT_EQ(repository_.games_read(), 1);
  clock_.Advance(seconds(1));
  (void)arena_->Leaderboard();
  EXPECT_EQ(repository_.games_read(), 2);
}

TEST_F(ArenaTest, TheLeaderboardIsComputedByOneOfManyCallers) {
  Answered();
  (void)arena_->Leaderboard();
  clock_.Advance(seconds(1));
  // A caller that comes while another one computes gets the board before it.
  repository_.WhileGamesAreRead([this] {
    EXPECT_TRUE(std::holds_alternative<std::vector<Standing>>(arena_->Leaderboard()));
  });
  (void)arena_->Leaderboard();
  EXPECT_EQ(repository_.games_read(), 2);
}

TEST_F(ArenaTest, ABoardThatFailsIsComputedAgain) {
  repository_.BreakGames(Error{ErrorCode::kUnavailable, "the disk is gone"});
  EXPECT_TRUE(std::holds_alternative<Refusal>(arena_->Leaderboard()));
  repository_.BreakGames(std::nullopt);
  EXPECT_TRUE(std::holds_alternative<std::vector<Standing>>(arena_->Leaderboard()));
}

TEST_F(ArenaTest, FollowersHearWhatIsStoredOfADuelThatHasExpired) {
  const std::string id = Begin();
  const auto follower = Follow(id);
  host_.Complete(0, "a", 1);
  clock_.Advance(minutes(11));  // The machine was asleep.
  arena_->Sweep();
  host_.Complete(1, "b", 1);
  Advance(seconds(1));
  EXPECT_EQ(follower->Pull().stage, "expired");
}

TEST_F(ArenaTest, AnAnswerThatFailsAtOnceEndsTheOtherOne) {
  host_.fails_at_once = true;
  const std::string id = Begin();
  EXPECT_TRUE(std::holds_alternative<Failed>(Stored(id).stage));
  ASSERT_EQ(host_.asked.size(), 2U);
  EXPECT_TRUE(host_.asked[1].aborted);
}

TEST_F(ArenaTest, AStreamIsNeverSilentForLong) {
  const std::string id = Begin();
  const auto follower = Follow(id);
  Advance(seconds(1));
  const int before = notified_;
  for (int i = 0; i < 40; ++i) Advance(seconds(1));
  EXPECT_EQ(notified_, before + 2);
}

TEST_F(ArenaTest, WithoutAnythingToShowItRests) {
  EXPECT_EQ(arena_->Step(), TimePoint::max());
  const std::string id = Begin();
  EXPECT_EQ(arena_->Step(), clock_.Now() + Arena::kStepPeriod);
  host_.Complete(0, "a", 1);
  host_.Complete(1, "b", 1);
  Advance(seconds(1));
  EXPECT_GT(arena_->Step(), clock_.Now() + Arena::kStepPeriod);
  Advance(seconds(70));
  EXPECT_EQ(arena_->Step(), TimePoint::max());
}

TEST_F(ArenaTest, StoppingEndsWhatIsAnsweredAndLetsNothingBegin) {
  const std::string id = Begin();
  const auto follower = Follow(id);
  arena_->Stop();
  EXPECT_TRUE(host_.asked[0].aborted);
  Advance(seconds(1));
  EXPECT_EQ(follower->Pull().stage, "failed");
  EXPECT_EQ(std::get<Failed>(Stored(id).stage).reason, "the server was ended");
  EXPECT_EQ(Refused({.prompt = "why?"}).kind, Refusal::Kind::kUnavailable);
}

TEST_F(ArenaTest, ItsEndEndsTheAnswers) {
  Begin();
  arena_.reset();
  EXPECT_TRUE(host_.asked[0].aborted);
  EXPECT_TRUE(host_.asked[1].aborted);
}

}  // namespace arena_test
}  // namespace zeus::colosseum
