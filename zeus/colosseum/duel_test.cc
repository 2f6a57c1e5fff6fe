#include "zeus/colosseum/duel.h"

#include <gtest/gtest.h>

#include "zeus/colosseum/testing/duel_samples.h"

namespace zeus::colosseum {
namespace duel_test {

using std::chrono::minutes;
using std::chrono::seconds;
using Kind = VoteRefusal::Kind;
using testing::ADuel;
using testing::kStart;

// A duel in which both answers are complete and took so many joules.
Duel Answered(double a, double b, double sigma = 1) {
  Duel duel = ADuel("d");
  duel.at(Side::kA).energy = AnswerEnergy{.energy = Joules(a), .sigma = Joules(sigma)};
  duel.at(Side::kB).energy = AnswerEnergy{.energy = Joules(b), .sigma = Joules(sigma)};
  BeginVoting(duel, kStart);
  return duel;
}

TEST(DuelTest, AVoteForTheCheaperAnswerReveals) {
  Duel duel = Answered(10, 50);
  EXPECT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kA, kStart + seconds(5)));
  EXPECT_TRUE(std::holds_alternative<Revealed>(duel.stage));
  EXPECT_EQ(duel.stage_at, kStart + seconds(5));
}

TEST(DuelTest, AVoteForTheDearerAnswerAsksWhetherItWasWorthIt) {
  Duel duel = Answered(10, 50);
  EXPECT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kB, kStart));
  ASSERT_TRUE(std::holds_alternative<Weighing>(duel.stage));
  EXPECT_EQ(std::get<Weighing>(duel.stage).preferred, Side::kB);
  EXPECT_FALSE(CastVote(duel, Ballot::kWorth, Choice::kNo, kStart));
  EXPECT_TRUE(std::holds_alternative<Revealed>(duel.stage));
}

TEST(DuelTest, ATieIsNotAskedAboutItsEnergy) {
  Duel duel = Answered(10, 50);
  EXPECT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kTie, kStart));
  EXPECT_TRUE(std::holds_alternative<Revealed>(duel.stage));
}

TEST(DuelTest, WithinTwoSigmaNobodyCanTell) {
  Duel duel = Answered(10, 12.8);  // Sigma of the difference is 1.41.
  EXPECT_EQ(CompareEnergy(duel).verdict, Comparison::Verdict::kCannotTell);
  EXPECT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kB, kStart));
  EXPECT_TRUE(std::holds_alternative<Revealed>(duel.stage));
  EXPECT_EQ(CompareEnergy(Answered(10, 12.9)).verdict, Comparison::Verdict::kBMore);
  EXPECT_EQ(CompareEnergy(Answered(10, 10, 0)).verdict, Comparison::Verdict::kCannotTell);
}

TEST(DuelTest, TheRatioIsOfTheGreaterEnergyToTheSmaller) {
  EXPECT_DOUBLE_EQ(CompareEnergy(Answered(10, 25)).ratio, 2.5);
  EXPECT_DOUBLE_EQ(CompareEnergy(Answered(25, 10)).ratio, 2.5);
  EXPECT_EQ(CompareEnergy(Answered(25, 10)).more(), Side::kA);
}

TEST(DuelTest, WithoutEnergyIdentitiesAreRevealedAtOnce) {
  Duel duel = Answered(10, 50);
  duel.at(Side::kA).energy.reset();
  EXPECT_EQ(CompareEnergy(duel).verdict, Comparison::Verdict::kUnknown);
  EXPECT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kB, kStart));
  EXPECT_TRUE(std::holds_alternative<Revealed>(duel.stage));
}

TEST(DuelTest, AVoteWhileAnswersArriveIsRefusedAndNoted) {
  Duel duel = ADuel("d");
  const auto refusal = CastVote(duel, Ballot::kResponse, Choice::kA, kStart);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->kind, Kind::kTooEarly);
  EXPECT_TRUE(duel.votes.empty());
  ASSERT_EQ(duel.irregularities.size(), 1U);
  EXPECT_EQ(duel.irregularities[0].what, "vote too early");
}

TEST(DuelTest, TheSameVoteAgainChangesNothingAndAnotherIsRefused) {
  Duel duel = Answered(10, 50);
  ASSERT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kA, kStart));
  const Duel before = duel;
  EXPECT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kA, kStart + seconds(1)));
  EXPECT_EQ(duel, before);
  const auto refusal = CastVote(duel, Ballot::kResponse, Choice::kB, kStart + seconds(1));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->kind, Kind::kSecondVote);
  EXPECT_EQ(duel.votes, before.votes);
  EXPECT_EQ(duel.irregularities.size(), 1U);
}

TEST(DuelTest, AChangeIsASecondVoteBesideTheFirst) {
  Duel duel = Answered(10, 50);
  EXPECT_EQ(CastVote(duel, Ballot::kChange, Choice::kB, kStart)->kind, Kind::kOutOfTurn);
  ASSERT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kA, kStart));
  ASSERT_FALSE(CastVote(duel, Ballot::kChange, Choice::kB, kStart));
  ASSERT_EQ(duel.votes.size(), 2U);
  EXPECT_EQ(duel.Find(Ballot::kResponse)->choice, Choice::kA);
  EXPECT_EQ(duel.Find(Ballot::kChange)->choice, Choice::kB);
  EXPECT_EQ(CastVote(duel, Ballot::kChange, Choice::kTie, kStart)->kind, Kind::kSecondVote);
}

TEST(DuelTest, WorthIsAskedOnlyWhenTheChosenAnswerTookMore) {
  Duel duel = Answered(10, 50);
  EXPECT_EQ(CastVote(duel, Ballot::kWorth, Choice::kYes, kStart)->kind, Kind::kOutOfTurn);
  ASSERT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kA, kStart));
  EXPECT_EQ(CastVote(duel, Ballot::kWorth, Choice::kYes, kStart)->kind, Kind::kOutOfTurn);
}

TEST(DuelTest, AVoteAfterTenMinutesIsGone) {
  Duel duel = Answered(10, 50);
  Duel late = duel;
  EXPECT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kA, kStart + minutes(10)));
  const auto refusal =
      CastVote(late, Ballot::kResponse, Choice::kA, kStart + minutes(10) + seconds(1));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->kind, Kind::kGone);
  EXPECT_TRUE(std::holds_alternative<Expired>(late.stage));
  EXPECT_EQ(CastVote(late, Ballot::kResponse, Choice::kA, kStart)->kind, Kind::kGone);
}

TEST(DuelTest, ARevealedDuelDoesNotExpireButItsVoteCannotBeChangedForEver) {
  Duel duel = Answered(10, 50);
  ASSERT_FALSE(CastVote(duel, Ballot::kResponse, Choice::kA, kStart));
  EXPECT_FALSE(ExpireIfOverdue(duel, kStart + minutes(60)));
  EXPECT_EQ(CastVote(duel, Ballot::kChange, Choice::kB, kStart + minutes(11))->kind, Kind::kGone);
}

TEST(DuelTest, AFailureEndsOnlyADuelThatIsStillAnswered) {
  Duel duel = ADuel("d");
  Fail(duel, "an upstream ended", kStart);
  EXPECT_TRUE(std::holds_alternative<Failed>(duel.stage));
  EXPECT_EQ(CastVote(duel, Ballot::kResponse, Choice::kA, kStart)->kind, Kind::kGone);
  Duel voting = Answered(1, 2);
  Fail(voting, "late", kStart);
  EXPECT_TRUE(std::holds_alternative<Voting>(voting.stage));
}

TEST(DuelTest, IrregularitiesAreBounded) {
  Duel duel = ADuel("d");
  for (int i = 0; i < 100; ++i) CastVote(duel, Ballot::kResponse, Choice::kA, kStart);
  EXPECT_EQ(duel.irregularities.size(), Duel::kMostIrregularities);
}

TEST(DuelTest, NamesComeBack) {
  for (const Ballot ballot : {Ballot::kResponse, Ballot::kWorth, Ballot::kChange})
    EXPECT_EQ(FindBallot(Name(ballot)), ballot);
  for (const Choice choice : {Choice::kA, Choice::kB, Choice::kTie, Choice::kYes, Choice::kNo})
    EXPECT_EQ(FindChoice(Name(choice)), choice);
  EXPECT_FALSE(FindChoice("c"));
}

}  // namespace duel_test
}  // namespace zeus::colosseum
