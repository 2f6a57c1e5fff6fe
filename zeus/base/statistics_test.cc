#include "zeus/base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace zeus {
namespace statistics_test {

std::vector<double> Draw(Random& random, int count, double mean, double relative_scatter) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(mean * (1 + relative_scatter * random.Normal()));
  return values;
}

TEST(StatisticsTest, SummaryIsMeanAndSampleVariance) {
  const SampleSummary summary = Summarize(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(summary.count, 8U);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_DOUBLE_EQ(summary.variance, 32.0 / 7);
  EXPECT_DOUBLE_EQ(summary.StandardError(), std::sqrt(32.0 / 7 / 8));
}

TEST(StatisticsTest, VarianceOfLargeNumbersDoesNotCancelAway) {
  const SampleSummary summary =
      Summarize(std::vector<double>{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16});
  EXPECT_DOUBLE_EQ(summary.variance, 30);
}

TEST(StatisticsTest, EmptyAndSingleSamplesHaveNoVariance) {
  EXPECT_EQ(Summarize({}).StandardError(), 0);
  EXPECT_EQ(Summarize(std::vector<double>{3}).variance, 0);
}

TEST(StatisticsTest, WilsonsIntervalAgreesWithItsFormula) {
  // z = 1.959964: (p + z^2 / 2n -+ z sqrt(p q / n + z^2 / 4n^2)) / (1 + z^2 / n)
  const Interval half = WilsonInterval(5, 10, 0.95);
  EXPECT_NEAR(half.low, 0.236593, 1e-6);
  EXPECT_NEAR(half.high, 0.763407, 1e-6);
  const Interval none = WilsonInterval(0, 20, 0.95);
  EXPECT_NEAR(none.low, 0, 1e-12);
  EXPECT_NEAR(none.high, 0.161125, 1e-6);
  EXPECT_NEAR(WilsonInterval(3, 3, 0.95).high, 1, 1e-12);
}

TEST(StatisticsTest, TheMediansIntervalNeedsSixValues) {
  EXPECT_FALSE(MedianInterval(std::vector<double>{1, 2, 3, 4, 5}, 0.95));
  const auto six = MedianInterval(std::vector<double>{1, 2, 3, 4, 5, 6}, 0.95);
  ASSERT_TRUE(six);
  EXPECT_EQ(six->low, 1);
  EXPECT_EQ(six->high, 6);
  std::vector<double> values;
  for (int i = 1; i <= 25; ++i) values.push_back(i);
  const auto many = MedianInterval(values, 0.95);  // The 8th and the 18th, by the tables.
  ASSERT_TRUE(many);
  EXPECT_EQ(many->low, 8);
  EXPECT_EQ(many->high, 18);
}

// Values of the published tables, to the digits they give.
TEST(StatisticsTest, StudentQuantilesAgreeWithTheTables) {
  EXPECT_NEAR(StudentQuantile(0.95, 1), 6.313751515, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.95, 4), 2.131846786, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.975, 10), 2.228138852, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.995, 30), 2.749995654, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.05, 4), -2.131846786, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.95, 1e5), 1.644853627, 3e-5);  // The normal distribution's.
}

TEST(StatisticsTest, StudentWithOneDegreeOfFreedomIsCauchy) {
  for (const double t : {-20.0, -1.0, 0.0, 0.3, 5.0})
    EXPECT_NEAR(StudentCumulative(t, 1), 0.5 + std::atan(t) / std::acos(-1.0), 1e-12) << t;
}

TEST(StatisticsTest, QuantileInvertsCumulative) {
  for (const double degrees : {1.0, 2.5, 7.3, 40.0, 1000.0}) {
    for (const double share : {0.01, 0.3, 0.5, 0.9, 0.999})
      EXPECT_NEAR(StudentCumulative(StudentQuantile(share, degrees), degrees), share, 1e-10);
  }
}

TEST(StatisticsTest, MeanIntervalIsStudents) {
  const Interval interval = MeanInterval(Summarize(std::vector<double>{9, 10, 11}), 0.95);
  EXPECT_NEAR(interval.low, 10 - 4.302652730 / std::sqrt(3.0), 1e-8);
  EXPECT_NEAR(interval.high, 10 + 4.302652730 / std::sqrt(3.0), 1e-8);
  EXPECT_TRUE(std::isinf(MeanInterval(Summarize(std::vector<double>{9}), 0.95).high));
}

TEST(StatisticsTest, SamplesWithoutScatterHaveAnExactRatio) {
  const Interval bounds = WelchRatioBounds({Summarize(std::vector<double>{100, 100})},
                                           {Summarize(std::vector<double>{103, 103})}, 0.95);
  EXPECT_NEAR(bounds.low, 1.03, 1e-12);
  EXPECT_NEAR(bounds.high, 1.03, 1e-12);
}

TEST(StatisticsTest, TheBoundIsWhereWelchsTestTurns) {
  const SampleSummary base = Summarize(std::vector<double>{100, 102, 98, 101});
  const SampleSummary changed = Summarize(std::vector<double>{110, 113, 108, 109, 111});
  const double low = WelchRatioBounds({base}, {changed}, 0.95).low;
  // The test itself, written out.
  const double base_part = low * low * base.variance / 4;
  const double changed_part = changed.variance / 5;
  const double t = (changed.mean - low * base.mean) / std::sqrt(base_part + changed_part);
  const double degrees = std::pow(base_part + changed_part, 2) /
                         (base_part * base_part / 3 + changed_part * changed_part / 4);
  EXPECT_NEAR(StudentCumulative(t, degrees), 0.95, 1e-9);
}

TEST(StatisticsTest, MeansThatMayBeZeroBoundNothing) {
  const SampleSummary wild = Summarize(std::vector<double>{1, 100});
  const SampleSummary calm = Summarize(std::vector<double>{50, 51});
  EXPECT_TRUE(std::isinf(WelchRatioBounds({wild}, {calm}, 0.95).high));
  EXPECT_EQ(WelchRatioBounds({calm}, {wild}, 0.95).low, 0);
}

TEST(StatisticsTest, AnErrorThatAllRunsShareWidensTheBounds) {
  const SampleSummary sample = Summarize(std::vector<double>{100, 101, 99, 100});
  const Interval alone = WelchRatioBounds({sample}, {sample}, 0.95);
  const Interval shared = WelchRatioBounds({sample, 0.05}, {sample, 0.05}, 0.95);
  EXPECT_LT(alone.high, 1.02);
  EXPECT_GT(shared.high, 1 + 1.6 * 0.05 * std::sqrt(2.0));
  EXPECT_LT(shared.low, 1 - 1.6 * 0.05 * std::sqrt(2.0) / 1.2);
}

// How often a bound at 95 % is wrong, over many repetitions of one experiment.
struct Misses {
  double low = 0;   // The true ratio lies below the lower bound.
  double high = 0;  // … above the upper bound.
};

template <class Bounds>
Misses CountMisses(int runs, int experiments, const Bounds& bounds) {
  constexpr double kTrueRatio = 1.03;
  Random random(20240611);
  Misses misses;
  for (int i = 0; i < experiments; ++i) {
    const std::vector<double> base = Draw(random, runs, 500, 0.02);
    const std::vector<double> changed = Draw(random, runs, 500 * kTrueRatio, 0.03);
    const Interval interval = bounds(base, changed, random);
    if (interval.low > kTrueRatio) misses.low += 1.0 / experiments;
    if (interval.high < kTrueRatio) misses.high += 1.0 / experiments;
  }
  return misses;
}

TEST(StatisticsTest, WelchBoundsAreWrongInAtMostOneOfTwentyExperiments) {
  for (const int runs : {2, 3, 5, 20}) {
    const Misses misses = CountMisses(runs, 4000, [](const auto& base, const auto& changed, auto&) {
      return WelchRatioBounds({Summarize(base)}, {Summarize(changed)}, 0.95);
    });
    EXPECT_LT(misses.low, 0.06) << runs;
    EXPECT_LT(misses.high, 0.06) << runs;
    // Two runs have so few degrees of freedom that Welch's test is careful.
    EXPECT_GT(misses.low, runs == 2 ? 0.01 : 0.03) << runs;
  }
}

TEST(StatisticsTest, BootstrapBoundsAreWrongInAtMostOneOfTwentyExperiments) {
  for (const int runs : {5, 20}) {
    const Misses misses =
        CountMisses(runs, 1000, [](const auto& base, const auto& changed, Random& random) {
          return BootstrapRatioBounds(base, changed, {.resamples = 1000}, random);
        });
    EXPECT_LT(misses.low, 0.07) << runs;
    EXPECT_LT(misses.high, 0.07) << runs;
    EXPECT_GT(misses.low, 0.02) << runs;
  }
}

TEST(StatisticsTest, BootstrapRepeatsWithItsSeed) {
  const std::vector<double> base = {100, 103, 99, 101, 98};
  const std::vector<double> changed = {104, 107, 105, 103, 109};
  Random first(7);
  Random second(7);
  const Interval one = BootstrapRatioBounds(base, changed, {}, first);
  const Interval two = BootstrapRatioBounds(base, changed, {}, second);
  EXPECT_EQ(one.low, two.low);
  EXPECT_EQ(one.high, two.high);
}

}  // namespace statistics_test
}  // namespace zeus

// Compares Student's distribution with that of Boost.Math, which the tests have and the command has
// not (docs/adr/0031-libraries-or-our-own.md).

#if __has_include(<boost/math/distributions/students_t.hpp>)

#include <boost/math/distributions/students_t.hpp>
#include <gtest/gtest.h>

#include <cmath>

#include "zeus/base/statistics.h"

namespace zeus {
namespace statistics_test {

TEST(StudentReferenceTest, CumulativeIsThatOfBoost) {
  for (const double degrees : {1.0, 1.5, 2.0, 3.7, 10.0, 29.3, 1e3, 1e5}) {
    const boost::math::students_t reference(degrees);
    for (const double t : {-40.0, -3.0, -1.0, -1e-3, 0.0, 0.5, 1.96, 4.0, 100.0}) {
      EXPECT_NEAR(StudentCumulative(t, degrees), boost::math::cdf(reference, t), 1e-8)
          << t << " with " << degrees;
    }
  }
}

TEST(StudentReferenceTest, QuantileIsThatOfBoost) {
  for (const double degrees : {1.0, 1.5, 2.0, 3.7, 10.0, 29.3, 1e3, 1e5}) {
    const boost::math::students_t reference(degrees);
    for (const double probability : {1e-4, 0.025, 0.3, 0.5, 0.8, 0.95, 0.999}) {
      const double expected = boost::math::quantile(reference, probability);
      EXPECT_NEAR(StudentQuantile(probability, degrees), expected, 1e-7 * (1 + std::abs(expected)))
          << probability << " with " << degrees;
    }
  }
}

}  // namespace statistics_test
}  // namespace zeus

#endif
