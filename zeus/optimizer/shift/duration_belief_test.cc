#include "zeus/optimizer/shift/duration_belief.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace zeus {
namespace duration_belief_test {

TEST(DurationBeliefTest, OneRunIsBelievedWithTheAssumedSpread) {
  const std::vector<Seconds> runs{Seconds(1000)};
  const DurationBelief belief = DurationBelief::FromRuns(runs);
  EXPECT_EQ(belief.mean(), Seconds(1000));
  EXPECT_NEAR(belief.sigma().count(), 141, 1);
  EXPECT_GT(belief.longest(), belief.q95());
  EXPECT_GT(belief.q95(), belief.mean());
}

TEST(DurationBeliefTest, ManyRunsShowTheirSpread) {
  std::vector<Seconds> runs;
  for (int i = 0; i < 200; ++i) runs.emplace_back(i % 2 == 0 ? 990.0 : 1010.0);
  const DurationBelief belief = DurationBelief::FromRuns(runs);
  EXPECT_NEAR(belief.sigma().count(), 22, 2);  // Eight runs of assumption are still in it.
  EXPECT_LT(belief.longest(), Seconds(1090));
}

TEST(DurationBeliefTest, WhatIsSaidExactlyIsTakenSo) {
  const DurationBelief belief = DurationBelief::Of(Seconds(60), Seconds(0));
  EXPECT_EQ(belief.longest(), Seconds(60));
  EXPECT_EQ(belief.Times(0.5).q95(), Seconds(30));
}

// Runs of a known distribution stay below the quantiles as often as they say, whatever was seen.
TEST(DurationBeliefTest, TheQuantilesHoldForFewRunsToo) {
  std::mt19937_64 random(7);
  for (const int seen : {1, 3, 10, 40}) {
    int below_q95 = 0;
    int below_longest = 0;
    constexpr int kRounds = 20'000;
    std::normal_distribution<double> length(1000, 100);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Seconds> runs;
      for (int i = 0; i < seen; ++i) runs.emplace_back(length(random));
      const DurationBelief belief = DurationBelief::FromRuns(runs);
      const Seconds next(length(random));
      if (next <= belief.q95()) ++below_q95;
      if (next <= belief.longest()) ++below_longest;
    }
    EXPECT_GE(below_q95, 0.94 * kRounds) << seen;
    EXPECT_GE(below_longest, kRounds - 10) << seen;
  }
}

}  // namespace duration_belief_test
}  // namespace zeus
