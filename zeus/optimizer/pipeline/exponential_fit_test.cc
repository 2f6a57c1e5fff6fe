#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/convex_cost.h"
#include "zeus/optimizer/pipeline/testing/instance_directory.h"

namespace zeus::pipeline {
namespace exponential_fit_test {

using namespace zeus::literals;
using ::testing::HasSubstr;
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

}  // namespace exponential_fit_test
}  // namespace zeus::pipeline
