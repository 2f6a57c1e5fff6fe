#include "zeus/optimizer/pipeline/periodic_frontier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/optimizer/pipeline/problem.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"
#include "zeus/optimizer/pipeline/testing/random_problem.h"

namespace zeus::pipeline {
namespace periodic_frontier_test {

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
  // This pipeline has 263 points up to seven times its stages, and 267 from nine times on.
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

// Makes a pipeline of another size with the kinds of an instance.
Result<Problem> Resized(const Problem& instance, int microbatches) {
  PipelineProfile profile{.stages = instance.stages, .blocking_power = instance.blocking_power};
  for (const ComputationKind& kind : instance.kinds)
    profile.instructions.push_back(
        {.stage = kind.stage, .instruction = kind.instruction, .points = kind.points});
  ZEUS_TRY(const Schedule schedule,
           MakeSchedule("1f1b", {.stages = instance.stages, .microbatches = microbatches}));
  ZEUS_TRY(Problem problem, MakeProblem(profile, schedule));
  for (Computation& computation : problem.computations) {
    const ComputationKind& made = problem.kinds[static_cast<std::size_t>(computation.kind)];
    for (std::size_t k = 0; k < instance.kinds.size(); ++k) {
      if (instance.kinds[k].stage != made.stage ||
          instance.kinds[k].instruction != made.instruction)
        continue;
      computation.kind = static_cast<int>(k);
      break;
    }
  }
  problem.kinds = instance.kinds;
  return problem;
}

class KnownPeriodicFrontierTest : public ::testing::TestWithParam<CostKind> {};

TEST_P(KnownPeriodicFrontierTest, IsTheKnownOneOfARealPipeline) {
  const std::string name = "gpt3_a100_8x128";
  const std::vector<KnownPoint> known = KnownFrontier(name, GetParam());
  if (known.empty()) GTEST_SKIP() << "no " << name << " in " << InstanceDirectory();
  const auto text = ReadSmallFile(InstanceDirectory() / "instances" / (name + ".json"), 1 << 24);
  const Problem instance = ParseInstance(text.value()).value();
  const CostTable costs = MakeCosts(instance, GetParam()).value();

  const auto extrapolated = ExtrapolateFrontier([&](int size) { return Resized(instance, size); },
                                                costs, instance.stages, instance.microbatches);

  ASSERT_TRUE(extrapolated.ok()) << extrapolated.error().message;
  ASSERT_TRUE(extrapolated.value().has_value());
  const Frontier frontier({.tick = costs.tick, .points = *extrapolated.value()});
  EXPECT_EQ(frontier.slowest().ticks, known.front().ticks);
  EXPECT_EQ(frontier.fastest().ticks, known.back().ticks);
  for (const KnownPoint& point : known) {
    const Joules blocking = instance.blocking_power *
                            (costs.tick * static_cast<double>(point.ticks)) *
                            static_cast<double>(instance.stages);
    EXPECT_NEAR((frontier.EnergyAt(point.ticks) - blocking) / point.effective_energy, 1, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(BothModels, KnownPeriodicFrontierTest,
                         ::testing::Values(CostKind::kExponential, CostKind::kHull),
                         [](const auto& model) {
                           return model.param == CostKind::kHull ? std::string("Hull")
                                                                 : std::string("Exponential");
                         });

}  // namespace periodic_frontier_test
}  // namespace zeus::pipeline
