#include "zeus/optimizer/pipeline/convex_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "zeus/optimizer/pipeline/testing/synthetic_profile.h"

namespace zeus::pipeline {
namespace convex_cost_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A problem of one computation with these times (ms) and energies (J); blocking power is 100 W.
Problem OneComputation(const std::vector<std::pair<double, double>>& points) {
  PipelineProfile profile{.stages = 1, .blocking_power = Watts(100)};
  InstructionProfile forward{.stage = 0, .instruction = "forward"};
  for (const auto& [milliseconds, joules] : points)
    forward.points.push_back({Hertz::FromMega(1000 - static_cast<double>(forward.points.size())),
                              Seconds(milliseconds / 1e3), Joules(joules)});
  profile.instructions.push_back(forward);
  return MakeProblem(profile, ParseSchedule("F0").value()).value();
}

ConvexCost MakeHull(const std::vector<std::pair<double, double>>& points) {
  return MakeCosts(OneComputation(points), CostKind::kHull).value().costs.front();
}

TEST(ConvexCostTest, TheHullKeepsOnlyWhatLiesLowest) {
  // Effective energies: 10, 8.5, 5, 4, so the second point lies above the line to the third.
  const ConvexCost cost = MakeHull({{100, 20}, {110, 19.5}, {120, 17}, {140, 18}});
  EXPECT_THAT(cost.times, ElementsAre(100'000, 120'000, 140'000));
  EXPECT_THAT(cost.slopes, ElementsAre(0, 250'000'000, 50'000'000));  // 250 W and 50 W.
  EXPECT_DOUBLE_EQ(cost.at_longest.value(), 4);
}

TEST(ConvexCostTest, PointsNeedNotBeInAnyOrder) {
  EXPECT_EQ(MakeHull({{140, 18}, {100, 20}, {120, 17}}).times,
            MakeHull({{100, 20}, {120, 17}, {140, 18}}).times);
}

TEST(ConvexCostTest, NobodyIsSlowerForNothing) {
  // The last two points save nothing: the effective energies are 10, 5, 5 and 6 J.
  EXPECT_THAT(MakeHull({{100, 20}, {120, 17}, {150, 20}, {160, 22}}).times,
              ElementsAre(100'000, 120'000));
  // The second point is slower and more expensive.
  EXPECT_THAT(MakeHull({{100, 20}, {120, 30}}).times, ElementsAre(100'000));
}

TEST(ConvexCostTest, OfEqualTimesTheCheaperCounts) {
  const ConvexCost cost = MakeHull({{100, 20}, {100, 18}, {120, 17}});
  EXPECT_THAT(cost.times, ElementsAre(100'000, 120'000));
  EXPECT_THAT(cost.slopes, ElementsAre(0, 150'000'000));
}

TEST(ConvexCostTest, CostsBetweenPointsAreLinear) {
  const Problem problem = OneComputation({{100, 20}, {120, 17}, {140, 18}});
  const CostTable costs = MakeCosts(problem, CostKind::kHull).value();
  EXPECT_NEAR(costs.At(0, 100'000).value(), 10, 1e-9);
  EXPECT_NEAR(costs.At(0, 110'000).value(), 7.5, 1e-9);
  EXPECT_NEAR(costs.At(0, 120'000).value(), 5, 1e-9);
  EXPECT_NEAR(costs.At(0, 135'000).value(), 4.25, 1e-9);
}

TEST(ConvexCostTest, ExponentialSlopesFallAndAddUpToTheModel) {
  Problem problem = OneComputation({{53, 40}, {80, 20}});
  problem.kinds.front().exponential =
      ExponentialModel{.a = 457, .b = -0.07, .c = 6, .min = 53, .max = 80};
  const CostTable costs = MakeCosts(problem, CostKind::kExponential).value();
  const ConvexCost& cost = costs.costs.front();
  EXPECT_EQ(cost.shortest(), 53);
  EXPECT_EQ(cost.longest(), 80);
  for (std::size_t k = 2; k < cost.slopes.size(); ++k)
    EXPECT_LE(cost.slopes[k], cost.slopes[k - 1]);
  EXPECT_GT(cost.slopes.back(), 0);
  EXPECT_NEAR(costs.At(0, 53).value(), 457 * std::exp(-0.07 * 53) + 6, 1e-7);
}

TEST(ConvexCostTest, FitsAnExponentialWhereNoneIsGiven) {
  const auto schedule = MakeSchedule("1f1b", {.stages = 2, .microbatches = 2});
  const Problem problem = MakeProblem(SyntheticProfile(2), schedule.value()).value();
  const auto costs = MakeCosts(problem, CostKind::kExponential);
  ASSERT_TRUE(costs.ok()) << costs.error().message;
  EXPECT_EQ(costs.value().costs.size(), problem.kinds.size());
}

TEST(ConvexCostTest, RefusesAModelThatDoesNotFall) {
  Problem problem = OneComputation({{53, 40}, {80, 20}});
  const auto why = [&](const ExponentialModel& model) {
    problem.kinds.front().exponential = model;
    const auto costs = MakeCosts(problem, CostKind::kExponential);
    return costs.ok() ? std::string("it was accepted") : costs.error().message;
  };
  EXPECT_THAT(why({.a = 1, .b = 0.1, .c = 0, .min = 1, .max = 9}), HasSubstr("does not fall"));
  EXPECT_THAT(why({.a = -1, .b = -0.1, .c = 0, .min = 1, .max = 9}), HasSubstr("does not fall"));
  EXPECT_THAT(why({.a = 1, .b = -0.1, .c = 0, .min = 9, .max = 1}), HasSubstr("9 to 1 quanta"));
  EXPECT_THAT(why({.a = 1, .b = -0.1, .c = 0, .min = 1, .max = 1LL << 40}), HasSubstr("quanta"));
}

TEST(ConvexCostTest, EnormousSlopesDoNotOverflow) {
  // Many computations save a hundred megajoules in a microsecond.
  PipelineProfile profile{.stages = 1, .blocking_power = Watts(0)};
  profile.instructions.push_back({0,
                                  "forward",
                                  {{Hertz::FromMega(2), Seconds(1e-6), Joules(1e8)},
                                   {Hertz::FromMega(1), Seconds(2e-6), Joules(0)}}});
  const auto schedule = MakeSchedule("gpipe", {.stages = 1, .microbatches = 1});
  Schedule many = schedule.value();
  many.stages.front().clear();
  for (int m = 0; m < 1000; ++m) many.stages.front().push_back({"forward", m, 0});
  const Problem problem = MakeProblem(profile, many).value();
  const CostTable costs = MakeCosts(problem, CostKind::kHull).value();
  const double sum = static_cast<double>(costs.costs.front().slopes[1]) * 1000;
  EXPECT_LT(sum, 0x1p61);
  EXPECT_NEAR(costs.At(0, 1).value(), 1e8, 1e-3);
}

}  // namespace convex_cost_test
}  // namespace zeus::pipeline
