#include "zeus/optimizer/batch_size/gaussian_thompson.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "zeus/base/json.h"

namespace zeus {
namespace gaussian_thompson_test {

constexpr std::array kArms = {8, 16, 32};

constexpr std::array kOneJoule = {Joules(1), Joules(1), Joules(1)};

TEST(CostSamplesTest, MeanAndVarianceAreThoseOfTheSamples) {
  CostSamples samples(0);
  for (const double cost : {3.0, 5.0, 10.0}) samples.Add(cost, true);
  EXPECT_DOUBLE_EQ(samples.mean(), 6);
  EXPECT_DOUBLE_EQ(samples.variance(), 26.0 / 3);
}

TEST(CostSamplesTest, EqualSamplesHaveNoVarianceAtAll) {
  CostSamples samples(0);
  for (int i = 0; i < 1000; ++i) samples.Add(0.1, true);
  EXPECT_EQ(samples.variance(), 0);
}

TEST(CostSamplesTest, AWindowForgetsWhatIsOlder) {
  CostSamples samples(3);
  samples.Add(1e15, true);
  for (const double cost : {3.0, 5.0, 10.0}) samples.Add(cost, cost > 4);
  EXPECT_EQ(samples.count(), 3);
  EXPECT_EQ(samples.converged(), 2);
  EXPECT_DOUBLE_EQ(samples.mean(), 6);
  EXPECT_DOUBLE_EQ(samples.variance(), 26.0 / 3);
}

TEST(CostSamplesTest, AMillionSamplesAreSavedInAFewBytes) {
  CostSamples samples(0);
  for (int i = 0; i < 1'000'000; ++i) samples.Add(i % 7, true);
  EXPECT_LT(samples.Save().dump().size(), 80);
  EXPECT_NEAR(samples.mean(), 3, 1e-5);
  EXPECT_NEAR(samples.variance(), 4, 1e-5);
}

TEST(GaussianThompsonTest, TheBeliefIsThatOfTheConjugatePrior) {
  GaussianThompson arms(kArms, {.prior_mean = -7, .prior_precision = 0.5});
  arms.Observe(8, 4, true);
  arms.Observe(8, 6, true);  // Variance 1, so each is worth a precision of 1.
  const CostBelief belief = arms.Belief(8, Joules(1)).value();
  EXPECT_DOUBLE_EQ(belief.mean.value(), (0.5 * 7 + 2 * 5) / 2.5);
  EXPECT_DOUBLE_EQ(belief.sigma.value(), std::sqrt(1 / 2.5));
}

TEST(GaussianThompsonTest, EqualCostsArePointMassWhateverThePriorSays) {
  GaussianThompson arms(kArms, {.prior_mean = -7, .prior_precision = 0.5});
  for (int i = 0; i < 2; ++i) arms.Observe(8, 4, true);
  const CostBelief belief = arms.Belief(8, Joules(10)).value();
  EXPECT_EQ(belief.mean, Joules(40));
  EXPECT_EQ(belief.sigma, Joules(0));
}

TEST(GaussianThompsonTest, WithoutObservationsThePriorIsAllThereIs) {
  const GaussianThompson informed(kArms, {.prior_mean = -7, .prior_precision = 0.25});
  EXPECT_EQ(informed.Belief(8, Joules(1))->mean, Joules(7));
  EXPECT_EQ(informed.Belief(8, Joules(1))->sigma, Joules(2));
  EXPECT_FALSE(GaussianThompson(kArms, {}).Belief(8, Joules(1)).has_value());
}

TEST(GaussianThompsonTest, ArmsThatNeedObservationsComeFirstInRandomOrder) {
  GaussianThompson arms(kArms, {});
  for (int i = 0; i < 2; ++i) arms.Observe(16, 1, true);
  arms.Observe(8, 1, true);
  Random random(1);
  std::map<int, int> predicted;
  for (int i = 0; i < 1000; ++i) ++predicted[arms.Predict(kArms, kOneJoule, random)];
  EXPECT_EQ(predicted[16], 0);
  EXPECT_NEAR(predicted[8], 500, 80);
  EXPECT_NEAR(predicted[32], 500, 80);
}

TEST(GaussianThompsonTest, ArmsAreDrawnAsOftenAsTheyAreBelievedToBeBest) {
  GaussianThompson arms(kArms, {});
  for (const double cost : {9.0, 11.0}) arms.Observe(8, cost, true);    // N(10, 1/2)
  for (const double cost : {10.0, 12.0}) arms.Observe(16, cost, true);  // N(11, 1/2)
  for (int i = 0; i < 2; ++i) arms.Observe(32, 20, true);
  Random random(1);
  std::map<int, int> predicted;
  for (int i = 0; i < 10000; ++i) ++predicted[arms.Predict(kArms, kOneJoule, random)];
  EXPECT_NEAR(predicted[8], 8413, 150);  // P(Z < 1)
  EXPECT_EQ(predicted[32], 0);
  EXPECT_EQ(arms.Best(kArms, kOneJoule), 8);
}

TEST(GaussianThompsonTest, EpochCostsTurnUnitsIntoCosts) {
  GaussianThompson arms(kArms, {});
  for (const int arm : kArms)
    for (int i = 0; i < 2; ++i) arms.Observe(arm, 10, true);
  EXPECT_EQ(arms.Best(kArms, std::array{Joules(2), Joules(1), Joules(2)}), 16);
}

}  // namespace gaussian_thompson_test
}  // namespace zeus
