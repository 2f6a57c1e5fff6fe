#include "zeus/base/nonnegative_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "zeus/base/random.h"

namespace zeus {
namespace nonnegative_fit_test {

TEST(NonNegativeFitTest, FindsTheCoefficientsOfALaw) {
  Random random(3);
  NonNegativeFit fit(3);
  for (int i = 0; i < 500; ++i) {
    const std::array<double, 3> row = {1, random.Uniform(1, 100), random.Uniform(0, 1e5)};
    const double noise = 0.1 * random.Normal();
    fit.Add(row, 3 * row[0] + 0.05 * row[1] + 2.5e-5 * row[2] + noise, 100);
  }
  fit.Solve();
  EXPECT_NEAR(fit[0], 3, 0.05);
  EXPECT_NEAR(fit[1], 0.05, 0.001);
  EXPECT_NEAR(fit[2], 2.5e-5, 1e-6);
  EXPECT_NEAR(std::sqrt(fit.Covariance(0, 0)), 0.013, 0.005);
}

TEST(NonNegativeFitTest, NegativeCoefficientsAreHeldAtZeroAndTheOthersAdapt) {
  NonNegativeFit fit(2);
  for (int i = 1; i <= 10; ++i)
    fit.Add(std::array<double, 2>{1, static_cast<double>(i)}, 10.0 - 0.5 * i, 1);
  fit.Solve();
  EXPECT_EQ(fit[1], 0);
  EXPECT_NEAR(fit[0], 7.25, 1e-6);
}

TEST(NonNegativeFitTest, PriorHoldsWhatRowsDoNotSay) {
  NonNegativeFit fit(2);
  fit.SetPrior(0, 5, 1);
  fit.SetPrior(1, 2, 0.5);
  // The sum is known exactly, its parts are not: the prior's ratio of doubts decides.
  fit.Add(std::array<double, 2>{1, 1}, 8.25, 1e6);
  fit.Solve();
  EXPECT_NEAR(fit[0] + fit[1], 8.25, 1e-4);
  EXPECT_NEAR(fit[0], 6, 1e-2);
  EXPECT_NEAR(fit.Variance(std::array<double, 2>{1, 1}), 0, 1e-4);
  EXPECT_GT(fit.Variance(std::array<double, 2>{1, -1}), 0.1);
}

TEST(NonNegativeFitTest, ForgottenRowsGiveWayToNewOnes) {
  NonNegativeFit fit(1);
  fit.Add(std::array<double, 1>{1}, 10, 100);
  fit.Forget(1e-3);
  fit.Add(std::array<double, 1>{1}, 20, 100);
  fit.Solve();
  EXPECT_NEAR(fit[0], 20, 0.02);
}

TEST(NonNegativeFitTest, RowsThatAreNotFiniteAreIgnored) {
  NonNegativeFit fit(1);
  fit.Add(std::array<double, 1>{1}, 4, 1);
  fit.Add(std::array<double, 1>{std::numeric_limits<double>::quiet_NaN()}, 4, 1);
  fit.Add(std::array<double, 1>{1}, std::numeric_limits<double>::infinity(), 1);
  fit.Solve();
  EXPECT_NEAR(fit[0], 4, 1e-6);
}

}  // namespace nonnegative_fit_test
}  // namespace zeus
