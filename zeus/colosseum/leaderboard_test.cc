#include "zeus/colosseum/leaderboard.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zeus::colosseum {
namespace leaderboard_test {

Game AGame(const std::string& a, const std::string& b, Choice vote) {
  return {.models = {a, b},
          .joules = {10.0, 20.0},
          .output_tokens = {100.0, 100.0},
          .vote = vote,
          .revealed = true};
}

const Standing& Of(const std::vector<Standing>& standings, const std::string& model) {
  for (const Standing& standing : standings)
    if (standing.model == model) return standing;
  throw std::out_of_range(model);
}

TEST(RatingsTest, OddsOfTenToOneAreFourHundredPoints) {
  // So many games that the virtual one does not matter.
  const auto ratings = FitRatings(2, {{0, 1, 1e6, 1e5}});
  EXPECT_NEAR(ratings[0] - ratings[1], 400, 0.01);
  EXPECT_NEAR(ratings[0] + ratings[1], 2000, 1e-6);
}

TEST(RatingsTest, TheStrengthsExplainTheExpectedWins) {
  // At the maximum of the likelihood every model won as often as its strength says.
  const std::vector<PairScore> scores = {{0, 1, 30, 10}, {0, 2, 25, 25}, {1, 2, 5, 35}};
  const auto ratings = FitRatings(3, scores);
  const auto strength = [&](std::size_t i) { return std::pow(10, (ratings[i] - 1000) / 400); };
  // The ratings are shifted to a mean of 1000, and the virtual opponent with them.
  double wins = 0;
  double expected = 0;
  for (const PairScore& score : scores) {
    const double games = score.wins_of_one + score.wins_of_other;
    if (score.one != 0) continue;
    wins += score.wins_of_one;
    expected += games * strength(0) / (strength(0) + strength(score.other));
  }
  EXPECT_NEAR(wins, expected, 0.2);
}

TEST(RatingsTest, AModelThatAlwaysWonHasAFiniteRating) {
  const auto ratings = FitRatings(2, {{0, 1, 5, 0}});
  EXPECT_GT(ratings[0], ratings[1]);
  EXPECT_LT(ratings[0], 2000);
}

TEST(LeaderboardTest, WinsTiesAndEnergyAreCountedForTheRightModel) {
  std::vector<Game> games = {AGame("x", "y", Choice::kA), AGame("y", "x", Choice::kB),
                             AGame("x", "y", Choice::kTie), AGame("y", "x", Choice::kA)};
  const auto standings = MakeLeaderboard(games, Random(1));
  ASSERT_EQ(standings.size(), 2U);
  const Standing& x = Of(standings, "x");
  EXPECT_EQ(x.games, 4);
  EXPECT_EQ(x.wins, 2);
  EXPECT_EQ(x.ties, 1);
  EXPECT_DOUBLE_EQ(x.win_rate.value().value(), 2.5 / 4);
  EXPECT_EQ(standings.front().model, "x");
  ASSERT_TRUE(x.response_joules);
  EXPECT_DOUBLE_EQ(x.response_joules->value, 15);  // The values are 10, 20, 10 and 20.
  EXPECT_DOUBLE_EQ(x.token_joules->value, 0.15);
  EXPECT_FALSE(x.response_joules->interval);
}

TEST(LeaderboardTest, MoreDuelsNarrowTheInterval) {
  std::vector<Game> few;
  std::vector<Game> many;
  for (int i = 0; i < 1000; ++i) {
    const Game game = AGame("x", "y", i % 4 == 0 ? Choice::kB : Choice::kA);
    if (i < 40) few.push_back(game);
    many.push_back(game);
  }
  const auto width = [](const std::vector<Game>& games) {
    const Interval interval = Of(MakeLeaderboard(games, Random(1)), "x").rating_interval;
    return interval.high - interval.low;
  };
  EXPECT_GT(width(few), 3 * width(many));
  // Odds of three to one are 191 points between the two, half of it above the mean.
  EXPECT_NEAR(Of(MakeLeaderboard(many, Random(1)), "x").rating, 1000 + 95.4, 2);
}

TEST(LeaderboardTest, TheIntervalHoldsTheTruthAboutAsOftenAsItSays) {
  constexpr int kTrials = 100;
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial));
    std::vector<Game> games;
    for (int i = 0; i < 200; ++i)
      games.push_back(AGame("x", "y", random.Uniform() < 0.64 ? Choice::kA : Choice::kB));
    const Interval interval = Of(MakeLeaderboard(games, Random(1)), "x").rating_interval;
    const double truth = 1000 + 200 * std::log10(0.64 / 0.36);
    if (interval.low <= truth && truth <= interval.high) ++held;
  }
  EXPECT_GE(held, 88);
}

TEST(LeaderboardTest, TurnedVotesAreThoseOfTheDearerWinner) {
  Game worth_it = AGame("x", "y", Choice::kB);
  worth_it.worth = Choice::kYes;
  Game not_worth_it = AGame("x", "y", Choice::kB);
  not_worth_it.worth = Choice::kNo;
  Game changed = worth_it;
  changed.change = Choice::kA;
  const auto standings =
      MakeLeaderboard({worth_it, not_worth_it, changed, AGame("x", "y", Choice::kA)}, Random(1));
  EXPECT_EQ(Of(standings, "y").turned.cases, 3);
  EXPECT_EQ(Of(standings, "y").turned.hits, 2);
  EXPECT_EQ(Of(standings, "x").turned.cases, 0);
  EXPECT_FALSE(Of(standings, "x").turned.value());
}

TEST(LeaderboardTest, TheFrontierHoldsWhatNobodyBeatsInBoth) {
  std::vector<Game> games;
  const auto add = [&](const std::string& a, double a_joules, const std::string& b,
                       double b_joules) {
    for (int i = 0; i < 20; ++i) {
      Game game = AGame(a, b, Choice::kA);  // The first one always wins.
      game.joules = {a_joules, b_joules};
      games.push_back(game);
    }
  };
  add("good-dear", 90, "fair-cheap", 10);
  add("fair-cheap", 10, "bad-dear", 50);
  const auto standings = MakeLeaderboard(games, Random(1));
  EXPECT_TRUE(Of(standings, "good-dear").on_frontier);
  EXPECT_TRUE(Of(standings, "fair-cheap").on_frontier);
  EXPECT_FALSE(Of(standings, "bad-dear").on_frontier);
}

TEST(LeaderboardTest, WithoutGamesThereIsNobody) {
  EXPECT_TRUE(MakeLeaderboard({}, Random(1)).empty());
  Game unknown = AGame("x", "y", Choice::kA);
  unknown.joules = {};
  const auto standings = MakeLeaderboard({unknown}, Random(1));
  EXPECT_FALSE(standings.front().response_joules);
  EXPECT_FALSE(standings.front().on_frontier);
}

TEST(LeaderboardTest, TheSameSeedGivesTheSameIntervals) {
  std::vector<Game> games(30, AGame("x", "y", Choice::kA));
  games.resize(50, AGame("y", "x", Choice::kA));
  const auto one = MakeLeaderboard(games, Random(1));
  const auto other = MakeLeaderboard(games, Random(1));
  EXPECT_EQ(one[0].rating_interval.low, other[0].rating_interval.low);
}

}  // namespace leaderboard_test
}  // namespace zeus::colosseum
