#include "zeus/optimizer/pipeline/convex_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/testing/known_frontier.h"
#include "zeus/optimizer/pipeline/testing/random_problem.h"

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

using namespace zeus::literals;
using std::chrono_literals::operator""ms;

struct Measured {
  double milliseconds = 0;
  double joules = 0;
};

ComputationKind MakeKind(const std::vector<Measured>& points) {
  ComputationKind kind{.stage = 3, .instruction = "backward"};
  for (const Measured& point : points)
    kind.points.push_back(
        {.time = Seconds(point.milliseconds / 1e3), .energy = Joules(point.joules)});
  return kind;
}

double At(const ExponentialModel& model, double quanta) {
  return model.a * std::exp(model.b * quanta) + model.c;
}

TEST(ExponentialFitTest, FindsTheCurveThatThePointsLieOn) {
  const ExponentialModel truth{.a = 900, .b = -0.07, .c = 5};
  std::vector<Measured> points;
  for (int quanta = 50; quanta <= 80; quanta += 3)
    points.push_back({quanta + 0.5, At(truth, quanta)});

  const auto model = FitExponential(MakeKind(points), 0_W, 1ms);

  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(model.value().b, truth.b, 1e-7);
  EXPECT_NEAR(model.value().a, truth.a, 1e-3);
  EXPECT_NEAR(model.value().c, truth.c, 1e-5);
  EXPECT_EQ(model.value().min, 50);
  EXPECT_EQ(model.value().max, 80);
}

TEST(ExponentialFitTest, CostsAreWithoutTheBlockingPowerOverWholeQuanta) {
  const auto candidates = FitCandidates(MakeKind({{10.9, 8}, {20.1, 5}}), 100_W, 1ms);

  ASSERT_EQ(candidates.size(), 2);
  EXPECT_NEAR(candidates[0].cost.value(), 8 - 1, 1e-12);
  EXPECT_NEAR(candidates[1].cost.value(), 5 - 2, 1e-12);
}

TEST(ExponentialFitTest, ATransferBesideTheStageCostsWhatItTakes) {
  ComputationKind kind = MakeKind({{10.5, 8}});
  kind.beside_the_stage = true;
  EXPECT_EQ(FitCandidates(kind, 100_W, 1ms).front().cost, 8_J);
}

TEST(ExponentialFitTest, ABeatenPointIsNoCandidate) {
  const auto candidates =
      FitCandidates(MakeKind({{10.5, 9}, {11.5, 8}, {12.5, 8.5}, {13.5, 7}, {14.5, 6}}), 0_W, 1ms);
  ASSERT_EQ(candidates.size(), 4);
  for (const FitCandidate& candidate : candidates) EXPECT_NE(candidate.quanta, 12);
}

TEST(ExponentialFitTest, TheFilterSeesTheEnergyItIsToldTo) {
  // The last point takes more energy than the one before it, but less effective energy.
  const ComputationKind kind = MakeKind({{10.5, 8}, {20.5, 7}, {30.5, 6}, {40.5, 5}, {50.5, 5.5}});
  EXPECT_EQ(FitCandidates(kind, 100_W, 1ms, ParetoFilter::kMeasured).back().quanta, 40);
  EXPECT_EQ(FitCandidates(kind, 100_W, 1ms, ParetoFilter::kEffective).back().quanta, 50);
}

TEST(ExponentialFitTest, WithinAQuantumTheDearestPointStays) {
  const auto candidates =
      FitCandidates(MakeKind({{10.2, 9}, {10.7, 8}, {11.5, 7}, {12.5, 6}, {13.5, 5}}), 0_W, 1ms);
  ASSERT_EQ(candidates.size(), 4);
  EXPECT_EQ(candidates.front().cost, 9_J);
}

TEST(ExponentialFitTest, FewCandidatesAreJoinedByThoseThatNoiseMayHaveBeaten) {
  const ComputationKind kind = MakeKind({{10.5, 9}, {11.5, 9.1}, {12.5, 8}, {30.5, 12}});
  const auto candidates = FitCandidates(kind, 0_W, 1ms);
  ASSERT_EQ(candidates.size(), 3);  // The one at 11 ms is beaten by 1 % only, that at 30 ms by far.
  EXPECT_EQ(candidates[1].quanta, 11);
}

TEST(ExponentialFitTest, OnePointIsAConstant) {
  const auto model = FitExponential(MakeKind({{10.5, 9}}), 100_W, 1ms);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model.value().min, model.value().max);
  EXPECT_DOUBLE_EQ(At(model.value(), 10), 8);
}

TEST(ExponentialFitTest, TwoPointsAreMetAndJoinedByNearlyALine) {
  const auto model = FitExponential(MakeKind({{10.5, 9}, {30.5, 5}}), 0_W, 1ms);
  ASSERT_TRUE(model.ok());
  EXPECT_LT(model.value().b, 0);
  EXPECT_NEAR(At(model.value(), 10), 9, 1e-9);
  EXPECT_NEAR(At(model.value(), 30), 5, 1e-9);
  EXPECT_NEAR(At(model.value(), 20), 7, 0.01);
}

TEST(ExponentialFitTest, APlateauAfterAStepIsFitted) {
  const std::vector<Measured> plateau{
      {50.5, 20}, {51.5, 5.003}, {52.5, 5.002}, {53.5, 5.001}, {54.5, 5}};
  const auto model = FitExponential(MakeKind(plateau), 0_W, 1ms);
  ASSERT_TRUE(model.ok());
  for (const Measured& point : plateau)
    EXPECT_NEAR(At(model.value(), std::floor(point.milliseconds)), point.joules, 0.01);
}

TEST(ExponentialFitTest, ASteepCurveOfLongComputationsStaysFinite) {
  const auto model = FitExponential(
      MakeKind({{90000.5, 20}, {90001.5, 5.2}, {90002.5, 5.1}, {90003.5, 5}}), 0_W, 1ms);
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(std::isfinite(model.value().a));
  EXPECT_GT(At(model.value(), 90000), At(model.value(), 90003));
}

TEST(ExponentialFitTest, EnergyThatRisesWithTimeIsRefusedByName) {
  const auto model = FitExponential(MakeKind({{10.5, 100}, {10.9, 101}, {11.5, 103}}), 0_W, 1ms);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(model.error().message, HasSubstr("backward of stage 3"));
}

TEST(ExponentialFitTest, AKindWithoutPointsIsRefusedByName) {
  const auto model = FitExponential(MakeKind({}), 0_W, 1ms);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, HasSubstr("backward of stage 3"));
}

class PublishedFitTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto path = InstanceDirectory() / "instances" / (std::string(GetParam()) + ".json");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
    instance_ = ParseJson(ReadSmallFile(path, 16 << 20).value()).value();
    filter_ = instance_["pareto_filter"] == "measured" ? ParetoFilter::kMeasured
                                                       : ParetoFilter::kEffective;
  }

  static ComputationKind Kind(const Json& spec) {
    ComputationKind kind{.stage = spec["stage"], .instruction = spec["type"]};
    for (const Json& option : spec["options_all"])
      kind.points.push_back({.clock = Hertz::FromMega(option["freq"]),
                             .time = Seconds(option["time_s"].get<double>()),
                             .energy = Joules(option["energy_j"].get<double>())});
    return kind;
  }

  Json instance_{};
  ParetoFilter filter_{};
};

TEST_P(PublishedFitTest, CandidatesAreThePublishedOnes) {
  for (const Json& spec : instance_["specs"]) {
    const auto candidates = FitCandidates(Kind(spec), Watts(instance_["p2p_power_w"].get<double>()),
                                          Seconds(instance_["unit_time_s"].get<double>()), filter_);
    const Json& published = spec["candidates"];
    ASSERT_EQ(candidates.size(), published.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Json& expected = published[published.size() - 1 - i];
      EXPECT_EQ(candidates[i].quanta, expected["quant_time"]);
      EXPECT_NEAR(candidates[i].cost.value(), expected["eff_cost"].get<double>(), 1e-9);
    }
  }
}

TEST_P(PublishedFitTest, FitsAtLeastAsWellAsThePublishedModel) {
  for (const Json& spec : instance_["specs"]) {
    const Watts blocking_power(instance_["p2p_power_w"].get<double>());
    const Seconds quantum(instance_["unit_time_s"].get<double>());
    const auto candidates = FitCandidates(Kind(spec), blocking_power, quantum, filter_);
    const Json& model = spec["cost_model"];
    const ExponentialModel published{.a = model["a"], .b = model["b"], .c = model["c"]};

    const auto fitted = FitExponential(Kind(spec), blocking_power, quantum, filter_);

    ASSERT_TRUE(fitted.ok()) << fitted.error().message;
    EXPECT_EQ(fitted.value().min, spec["min_quant"]);
    EXPECT_EQ(fitted.value().max, spec["max_quant"]);
    EXPECT_LE(SquaredError(fitted.value(), candidates),
              SquaredError(published, candidates) * (1 + 1e-6));
  }
}

INSTANTIATE_TEST_SUITE_P(Instances, PublishedFitTest,
                         ::testing::Values("gpt3_a100_32x512", "gpt3_a100_4x8", "hist_bert_a40_4x8",
                                           "recon_bert-huge-uncased_a100_4x32",
                                           "recon_gpt3-xl_a100_4x128",
                                           "sosp24_gpt3-175b_a100_sxm_8x12",
                                           "sosp24_gpt3-175b_a40_8x12", "synth_dvfs_8x32"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& letter : name)
                             if (letter == '-') letter = '_';
                           return name;
                         });

}  // namespace convex_cost_test
}  // namespace zeus::pipeline
