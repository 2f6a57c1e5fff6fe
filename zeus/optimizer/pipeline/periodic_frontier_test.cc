#include "zeus/optimizer/pipeline/periodic_frontier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "zeus/optimizer/pipeline/testing/synthetic_profile.h"

namespace zeus::pipeline {
namespace {

constexpr int kStages = 3;
constexpr double kImbalance = 0.05;

Result<Problem> OfSize(int microbatches) {
  ZEUS_TRY(const Schedule schedule,
           MakeSchedule("1f1b", {.stages = kStages, .microbatches = microbatches}));
  return MakeProblem(SyntheticProfile(kStages, kImbalance), schedule);
}

CostTable Costs() { return MakeCosts(OfSize(4).value(), CostKind::kHull).value(); }

TEST(PeriodicFrontierTest, IsTheFrontierOfTheWholePipeline) {
  const CostTable costs = Costs();
  constexpr int kMicrobatches = 16 * kStages + 1;

  const auto extrapolated = ExtrapolateFrontier(OfSize, costs, kStages, kMicrobatches);
  ASSERT_TRUE(extrapolated.ok()) << extrapolated.error().message;
  ASSERT_TRUE(extrapolated.value().has_value());

  const auto whole = SolveFrontier(OfSize(kMicrobatches).value(), costs);
  ASSERT_TRUE(whole.ok());
  const std::vector<FrontierPoint>& points = extrapolated.value().value();
  ASSERT_EQ(points.size(), whole.value().points().size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].ticks, whole.value().points()[i].ticks);
    EXPECT_NEAR(points[i].energy / whole.value().points()[i].energy, 1, 1e-9);
  }
}

TEST(PeriodicFrontierTest, APipelineThatChangesWithItsSizeIsRefused) {
  // The checked size has one microbatch more than it should.
  const ProblemOfSize odd = [](int microbatches) {
    return OfSize(microbatches == 8 * kStages ? microbatches + 1 : microbatches);
  };
  const auto extrapolated = ExtrapolateFrontier(odd, Costs(), kStages, 16 * kStages);
  ASSERT_TRUE(extrapolated.ok());
  EXPECT_FALSE(extrapolated.value().has_value());
}

TEST(PeriodicFrontierTest, SegmentsThatOnlyLargePipelinesHaveAreNoticed) {
  // Up to seven times its stages this one has 263 points, from nine times on 267.
  constexpr int kFour = 4;
  const ProblemOfSize make = [](int microbatches) -> Result<Problem> {
    ZEUS_TRY(const Schedule schedule,
             MakeSchedule("1f1b", {.stages = kFour, .microbatches = microbatches}));
    return MakeProblem(SyntheticProfile(kFour, 0.02), schedule);
  };
  const CostTable costs = MakeCosts(make(4).value(), CostKind::kHull).value();
  const auto extrapolated = ExtrapolateFrontier(make, costs, kFour, 16 * kFour);
  ASSERT_TRUE(extrapolated.ok());
  EXPECT_FALSE(extrapolated.value().has_value());
}

TEST(PeriodicFrontierTest, FewMicrobatchesAreNotWorthIt) {
  const auto never = [](int) -> Result<Problem> {
    return Error{ErrorCode::kInternal, "must not be built"};
  };
  const auto extrapolated = ExtrapolateFrontier(never, Costs(), kStages, 13 * kStages);
  ASSERT_TRUE(extrapolated.ok());
  EXPECT_FALSE(extrapolated.value().has_value());
}

TEST(PeriodicFrontierTest, CanBeCancelled) {
  const auto extrapolated = ExtrapolateFrontier(OfSize, Costs(), kStages, 16 * kStages,
                                                {.progress = [](double) { return false; }});
  ASSERT_FALSE(extrapolated.ok());
  EXPECT_EQ(extrapolated.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace zeus::pipeline
