#include "zeus/optimizer/batch_size/epoch_belief.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/optimizer/batch_size/knowledge_gradient.h"

namespace zeus {
namespace epoch_belief_test {

using Evidence = std::optional<EpochBelief::Evidence>;

TEST(EpochBeliefTest, OnePointFixesTheLevelAndItsNeighbourhood) {
  const EpochBelief belief(std::vector{16, 32, 64, 1024}, 32);
  const auto posterior = belief.Update(
      std::vector<Evidence>{{}, EpochBelief::Evidence{.log_epochs = 3, .variance = 0.01}, {}, {}});
  EXPECT_NEAR(posterior[1].mean, 3, 0.01);
  EXPECT_NEAR(posterior[0].mean, 3 - 0.15, 0.02);  // The slopes of the prior.
  EXPECT_NEAR(posterior[2].mean, 3 + 0.25, 0.02);
  EXPECT_LT(posterior[1].variance, 0.0101);
  EXPECT_LT(posterior[1].variance, posterior[2].variance);
  EXPECT_LT(posterior[2].variance, posterior[3].variance);
}

// Solves the same equations by elimination.
TEST(EpochBeliefTest, TwoPointsGiveTheTextbookPosterior) {
  const auto covariance = [](double octaves) {
    const double r = std::sqrt(5.0) * octaves / 4;
    return 0.64 * (1 + r + r * r / 3) * std::exp(-r) + 9;
  };
  const double a = covariance(0) + 0.02, b = covariance(2), d = covariance(0) + 0.05;
  const double y0 = 2.0 + 0.15, y1 = 2.4 - 0.25;  // Evidence less the prior mean.
  const double k0 = covariance(1), k1 = covariance(1);
  const double determinant = a * d - b * b;
  const double w0 = (k0 * d - k1 * b) / determinant, w1 = (k1 * a - k0 * b) / determinant;

  const EpochBelief belief(std::vector{16, 32, 64}, 32);
  const auto posterior = belief.Update(
      std::vector<Evidence>{EpochBelief::Evidence{.log_epochs = 2, .variance = 0.02},
                            {},
                            EpochBelief::Evidence{.log_epochs = 2.4, .variance = 0.05}});
  EXPECT_NEAR(posterior[1].mean, w0 * y0 + w1 * y1, 1e-10);
  EXPECT_NEAR(posterior[1].variance, covariance(0) - w0 * k0 - w1 * k1, 1e-10);
}

TEST(EpochBeliefTest, SixtyFourNeighboursWithExactEvidenceStaySolvable) {
  std::vector<int> batch_sizes;
  std::vector<Evidence> evidence;
  for (int i = 0; i < 64; ++i) {
    batch_sizes.push_back(1000 + i);
    evidence.emplace_back(EpochBelief::Evidence{.log_epochs = 2 + 0.001 * (i % 5), .variance = 0});
  }
  for (const auto& arm : EpochBelief(batch_sizes, 1000).Update(evidence)) {
    EXPECT_NEAR(arm.mean, 2.002, 0.01);
    EXPECT_GE(arm.variance, 0);
    EXPECT_LT(arm.variance, 1e-4);
  }
}

// Compares the formulas with the means of a million draws.
TEST(LognormalTest, ExpectationsAreThoseOfSamples) {
  const Lognormal x{.mean_log = 1.5, .variance_log = 0.16};
  Random random(7);
  constexpr int kDraws = 1'000'000;
  double shortfall = 0, above = 0, shortfall_above = 0;
  int count_above = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = std::exp(x.mean_log + 0.4 * random.Normal());
    shortfall += std::max(0.0, 5 - drawn);
    if (drawn <= 4) continue;
    ++count_above;
    above += drawn;
    shortfall_above += std::max(0.0, 5 - drawn);
  }
  EXPECT_NEAR(x.ExpectedShortfall(5), shortfall / kDraws, 0.005);
  EXPECT_NEAR(x.MeanAbove(4), above / count_above, 0.01);
  EXPECT_NEAR(x.ExpectedShortfallAbove(4, 5), shortfall_above / count_above, 0.002);
}

TEST(LognormalTest, WithoutVarianceItIsANumber) {
  const Lognormal x{.mean_log = std::log(3.0)};
  EXPECT_NEAR(x.ExpectedShortfall(5), 2, 1e-12);
  EXPECT_EQ(x.ExpectedShortfall(2), 0);
}

TEST(LognormalTest, WhatIsOutOfTheQuestionIsNoNumber) {
  const Lognormal x{.mean_log = 0, .variance_log = 0.01};
  EXPECT_TRUE(std::isnan(x.MeanAbove(1e6)));
}

}  // namespace epoch_belief_test
}  // namespace zeus
