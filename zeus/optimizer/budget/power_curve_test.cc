#include "zeus/optimizer/budget/power_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "zeus/base/random.h"

namespace zeus::water_filling {
namespace power_curve_test {

using literals::operator""_W;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PowerCurve Curve(const std::vector<CurveSample>& samples) {
  auto curve = PowerCurve::FromSamples(samples);
  EXPECT_TRUE(curve.ok()) << curve.error().message;
  return std::move(curve).value();
}

std::string Refusal(const CurveSample& sample) {
  const auto curve = PowerCurve::FromSamples(std::vector{sample});
  return curve.ok() ? "accepted" : curve.error().message;
}

TEST(PowerCurveTest, SlowdownIsRelativeToTheHighestLimitAndLinearBetweenMeasurements) {
  const PowerCurve curve = Curve({{.limit = 100_W, .time = Seconds(3), .draw = 98_W},
                                  {.limit = 200_W, .time = Seconds(2), .draw = 180_W},
                                  {.limit = 300_W, .time = Seconds(2), .draw = 180_W}});
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(100_W), 1.5);
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(150_W), 1.25);
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(250_W), 1);
  EXPECT_DOUBLE_EQ(curve.DrawAt(150_W).value(), 139);
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(1_W), 1.5);
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(1000_W), 1);
  EXPECT_EQ(curve.LimitFor(1.25), 150_W);
  EXPECT_EQ(curve.LimitFor(1), 200_W);
  EXPECT_EQ(curve.LimitFor(9), 100_W);
  EXPECT_EQ(curve.LimitFor(0.5), std::nullopt);
  EXPECT_THAT(curve.notes(), IsEmpty());
  EXPECT_FALSE(curve.assumed());
}

TEST(PowerCurveTest, NoiseIsAveragedUntilTheCurveFallsAndTheSureMeasurementCountsMore) {
  const PowerCurve curve =
      Curve({{.limit = 200_W, .time = Seconds(1.0), .time_sigma = Seconds(0.1)},
             {.limit = 250_W, .time = Seconds(1.1), .time_sigma = Seconds(0.1)},
             {.limit = 150_W, .time = Seconds(2.0), .time_sigma = Seconds(0.1)}});
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(200_W), 1);
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(150_W), 2 / 1.05);
  const PowerCurve surer =
      Curve({{.limit = 200_W, .time = Seconds(1.0), .time_sigma = Seconds(0.01)},
             {.limit = 250_W, .time = Seconds(1.1), .time_sigma = Seconds(0.1)},
             {.limit = 150_W, .time = Seconds(2.0), .time_sigma = Seconds(0.1)}});
  EXPECT_NEAR(surer.SlowdownAt(150_W), 2 / 1.001, 1e-4);
  EXPECT_THAT(surer.notes(), IsEmpty());
}

TEST(PowerCurveTest, MeasurementsOfOneLimitAreAveraged) {
  const PowerCurve curve = Curve({{.limit = 100_W, .time = Seconds(3)},
                                  {.limit = 200_W, .time = Seconds(2)},
                                  {.limit = 100_W, .time = Seconds(3)}});
  EXPECT_EQ(curve.points().size(), 2U);
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(100_W), 1.5);
}

TEST(PowerCurveTest, ACurveThatGoesBackwardsIsFlattenedAndSaidSo) {
  const PowerCurve curve = Curve({{.limit = 100_W, .time = Seconds(1), .draw = 100_W},
                                  {.limit = 200_W, .time = Seconds(1.3), .draw = 200_W},
                                  {.limit = 300_W, .time = Seconds(2), .draw = 300_W}});
  EXPECT_DOUBLE_EQ(curve.SlowdownAt(100_W), 1);
  EXPECT_THAT(
      curve.notes(),
      ElementsAre("the profile goes backwards: at 300.0 W the job takes 2.00 times as long as "
                  "at 100.0 W, which is more than its noise; it counts as equally fast "
                  "there, so profile it again"));
}

TEST(PowerCurveTest, ADrawAboveTheLimitIsSaid) {
  const PowerCurve curve =
      Curve({{.limit = 100_W, .time = Seconds(1), .draw = 250_W, .draw_sigma = 5_W}});
  EXPECT_THAT(curve.notes(), ElementsAre(HasSubstr("draws 250.0 W under a limit of 100.0 W")));
}

TEST(PowerCurveTest, TheBoundOfTheDrawHasTwoSigmasAndNeverFalls) {
  const PowerCurve curve =
      Curve({{.limit = 100_W, .time = Seconds(2), .draw = 90_W, .draw_sigma = 20_W},
             {.limit = 200_W, .time = Seconds(1), .draw = 95_W, .draw_sigma = 1_W}});
  EXPECT_NEAR(curve.DrawBoundAt(100_W).value(), 130, 1e-6);
  EXPECT_NEAR(curve.DrawBoundAt(200_W).value(), 130, 1e-6);
}

TEST(PowerCurveTest, WhatIsNoMeasurementIsRefusedWithItsPlace) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Refusal({.limit = Watts(nan), .time = Seconds(1)}),
              HasSubstr("power limit of nan W"));
  EXPECT_THAT(Refusal({.limit = 0_W, .time = Seconds(1)}), HasSubstr("power limit of 0 W"));
  EXPECT_THAT(Refusal({.limit = 100_W, .time = Seconds(nan)}),
              HasSubstr("the profile at 100.0 W has a time of nan s"));
  EXPECT_THAT(Refusal({.limit = 100_W, .time = Seconds(-1)}), HasSubstr("time of -1 s"));
  EXPECT_THAT(Refusal({.limit = 100_W, .time = Seconds(1), .draw = Watts(INFINITY)}),
              HasSubstr("draw of inf W"));
  EXPECT_THAT(Refusal({.limit = 100_W, .time = Seconds(1), .time_sigma = Seconds(-2)}),
              HasSubstr("time uncertainty of -2 s"));
  EXPECT_THAT(Refusal({.limit = 100_W, .time = Seconds(1), .draw_sigma = Watts(nan)}),
              HasSubstr("draw uncertainty of nan W"));
  EXPECT_FALSE(PowerCurve::FromSamples({}).ok());
}

TEST(PowerCurveTest, AnyMeasurementsMakeAMonotoneCurve) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<CurveSample> samples;
    const std::uint64_t count = 1 + random.Below(12);
    for (std::uint64_t i = 0; i < count; ++i)
      samples.push_back({.limit = Watts(100 + 25 * static_cast<double>(random.Below(9))),
                         .time = Seconds(std::exp(random.Normal())),
                         .draw = Watts(random.Uniform(1, 400)),
                         .time_sigma = Seconds(random.Uniform(0, 0.2)),
                         .draw_sigma = Watts(random.Uniform(0, 50))});
    const PowerCurve curve = Curve(samples);
    for (std::size_t i = 1; i < curve.points().size(); ++i) {
      const CurvePoint& low = curve.points()[i - 1];
      const CurvePoint& high = curve.points()[i];
      ASSERT_LT(low.limit, high.limit);
      ASSERT_GE(low.slowdown, high.slowdown);
      ASSERT_LE(low.draw, high.draw);
      ASSERT_LE(curve.DrawBoundAt(low.limit), curve.DrawBoundAt(high.limit) + Watts(1e-9));
    }
    ASSERT_EQ(curve.points().back().slowdown, 1);
    const double slowdown = random.Uniform(1, 3);
    ASSERT_LE(curve.SlowdownAt(*curve.LimitFor(slowdown)), slowdown + 1e-9);
  }
}

TEST(AssumedCurveTest, AJobBelowItsLimitWantsNoMoreThanItDraws) {
  const auto small =
      PowerCurve::Assumed({.lowest = 100_W, .highest = 300_W, .limit = 300_W, .draw = 120_W});
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_TRUE(small.value().assumed());
  EXPECT_DOUBLE_EQ(small.value().SlowdownAt(160_W), 1);
  EXPECT_LT(small.value().SlowdownAt(100_W), 1.15);
  EXPECT_NEAR(small.value().DrawAt(300_W).value(), 120, 1e-9);
}

TEST(AssumedCurveTest, AJobThatReachesItsLimitWantsMore) {
  const auto bound =
      PowerCurve::Assumed({.lowest = 100_W, .highest = 300_W, .limit = 290_W, .draw = 288_W});
  ASSERT_TRUE(bound.ok());
  EXPECT_GT(bound.value().SlowdownAt(200_W), 1.2);
  EXPECT_LE(bound.value().DrawAt(300_W), 300_W);
  const auto unknown = PowerCurve::Assumed({.lowest = 100_W, .highest = 300_W});
  ASSERT_TRUE(unknown.ok());
  EXPECT_GT(unknown.value().SlowdownAt(150_W), 1.3);
  EXPECT_EQ(unknown.value().lowest(), 100_W);
  EXPECT_EQ(unknown.value().highest(), 300_W);
}

TEST(AssumedCurveTest, ARangeThatIsNoneIsRefused) {
  EXPECT_FALSE(PowerCurve::Assumed({.lowest = 300_W, .highest = 100_W}).ok());
  EXPECT_FALSE(PowerCurve::Assumed({.lowest = Watts(NAN), .highest = 100_W}).ok());
  EXPECT_TRUE(PowerCurve::Assumed({.lowest = 100_W, .highest = 100_W}).ok());
}

}  // namespace power_curve_test
}  // namespace zeus::water_filling
