#include "zeus/optimizer/budget/rivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "zeus/optimizer/budget/solver.h"

namespace zeus::water_filling {
namespace rivals_test {

using ::testing::ElementsAre;

SharedCurve Curve(double low, double high, double slow, double draw) {
  const std::vector<CurveSample> samples{
      {.limit = Watts(low), .time = Seconds(slow), .draw = Watts(low)},
      {.limit = Watts(high), .time = Seconds(1), .draw = Watts(draw)}};
  return std::make_shared<const PowerCurve>(PowerCurve::FromSamples(samples).value());
}

// A job that draws all it may, and one on a larger GPU that draws little of it.
Problem Two(double watts) {
  return {.domains = {{.name = "site", .watts = Watts(watts)}},
          .jobs = {{.name = "hungry", .curve = Curve(100, 200, 2, 200), .placements = {{0, 1}}},
                   {.name = "modest", .curve = Curve(100, 400, 1.3, 100), .placements = {{0, 1}}}}};
}

std::vector<double> Limits(const Problem& problem, Rival rival) {
  const auto limits = RivalLimits(problem, rival);
  EXPECT_TRUE(limits.ok()) << limits.error().message;
  std::vector<double> numbers;
  for (const Watts limit : limits.value()) numbers.push_back(limit.value());
  return numbers;
}

TEST(RivalsTest, EachFollowsItsRule) {
  EXPECT_THAT(Limits(Two(300), Rival::kUniform), ElementsAre(100, 200));
  EXPECT_THAT(Limits(Two(300), Rival::kEqual), ElementsAre(150, 150));
  EXPECT_THAT(Limits(Two(300), Rival::kDemand), ElementsAre(200, 100));
  // 2 - (x - 100) / 100 = 1.3 - 0.3 (y - 100) / 300 where x + y = 300.
  EXPECT_THAT(Limits(Two(300), Rival::kMinMax), ElementsAre(172, 128));
}

TEST(RivalsTest, NobodyIsCappedWhereAllFitAndTheLowestWhereNothingDoes) {
  for (const Rival rival : kRivals) {
    // Twice the draw is no cap any more.
    const double modest = rival == Rival::kDemand ? 200 : 400;
    EXPECT_THAT(Limits(Two(600), rival), ElementsAre(200, modest)) << ToText(rival);
    EXPECT_THAT(Limits(Two(150), rival), ElementsAre(100, 100)) << ToText(rival);
  }
}

TEST(RivalsTest, AProblemWithoutMeaningIsRefused) {
  Problem problem = Two(300);
  problem.jobs[0].weight = -1;
  EXPECT_FALSE(RivalLimits(problem, Rival::kUniform).ok());
}

TEST(RivalsTest, TheOutcomeCountsGpus) {
  Problem problem = Two(300);
  problem.jobs[0].placements[0].gpus = 3;
  const std::vector<Watts> limits{Watts(100), Watts(400)};
  const Outcome outcome = OutcomeOf(problem, limits);
  EXPECT_DOUBLE_EQ(outcome.mean_slowdown, (3 * 2 + 1) / 4.0);
  EXPECT_DOUBLE_EQ(outcome.worst_slowdown, 2);
  EXPECT_DOUBLE_EQ(outcome.throughput, (3 * 0.5 + 1) / 4.0);
  EXPECT_EQ(outcome.draw, Watts(400));
  EXPECT_DOUBLE_EQ(outcome.energy, (3 * 2 * 100 + 100) / 700.0);
}

TEST(RivalsTest, NobodyBeatsTheSolver) {
  for (double watts = 210; watts < 600; watts += 13) {
    const Problem problem = Two(watts);
    const double ours = Solve(problem).value().mean_slowdown;
    for (const Rival rival : kRivals) {
      const Outcome outcome = OutcomeOf(problem, RivalLimits(problem, rival).value());
      EXPECT_LE(ours, outcome.mean_slowdown + 1e-9) << ToText(rival) << " at " << watts;
    }
  }
}

}  // namespace rivals_test
}  // namespace zeus::water_filling
