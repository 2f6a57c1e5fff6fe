#include "zeus/optimizer/pipeline/periodic_frontier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "zeus/optimizer/pipeline/testing/synthetic_profile.h"

namespace zeus::pipeline {
namespace {

constexpr int kStages = 3;

Result<Problem> OfSize(int microbatches) {
  ZEUS_TRY(const Schedule schedule,
           MakeSchedule("1f1b", {.stages = kStages, .microbatches = microbatches}));
  return MakeProblem(SyntheticProfile(kStages), schedule);
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
  const CostTable costs = Costs();
  // The checked size has one microbatch more than it should.
  const ProblemOfSize odd = [](int microbatches) {
    return OfSize(microbatches == 5 * kStages ? microbatches + 1 : microbatches);
  };
  const auto extrapolated = ExtrapolateFrontier(odd, costs, kStages, 16 * kStages);
  ASSERT_TRUE(extrapolated.ok());
  EXPECT_FALSE(extrapolated.value().has_value());
}

TEST(PeriodicFrontierTest, FewMicrobatchesAreNotWorthIt) {
  const auto never = [](int) -> Result<Problem> {
    return Error{ErrorCode::kInternal, "must not be built"};
  };
  const auto extrapolated = ExtrapolateFrontier(never, Costs(), kStages, 12 * kStages);
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
