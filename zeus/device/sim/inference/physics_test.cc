#include "zeus/device/sim/inference/physics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "zeus/device/sim/inference/model.h"

namespace zeus::sim {
namespace {

using namespace zeus::literals;

const GpuModel& Part() { return *FindGpuModel("H100").value(); }
const LanguageModel& Model(std::string_view name) { return *FindLanguageModel(name).value(); }

KnobSettings FullPower(const GpuModel& gpu) {
  return {.power_limit = gpu.default_limit, .clock_cap = std::nullopt};
}

// A chat of 100 prompt tokens and 390 output tokens per request in steady state.
IterationWork Chat(const LanguageModel& model, unsigned gpus, double batch) {
  const IterationParts parts(model, gpus);
  const double prompt = batch * 100.0 / 390.0;
  return parts.Fixed() + parts.Experts(batch + prompt) + parts.Decode(batch, batch * 295.0) +
         parts.Prompt({.start = 0, .tokens = prompt});
}

struct Measured {
  const char* model;
  unsigned gpus;
  double batch;
  double tokens_per_second;
  double joules_per_token;
};

class MeasuredPoint : public ::testing::TestWithParam<Measured> {};

TEST_P(MeasuredPoint, IsMetWithinAnEighth) {
  const Measured& measured = GetParam();
  const auto point = PredictIteration(
      Part(), Chat(Model(measured.model), measured.gpus, measured.batch), FullPower(Part()));
  ASSERT_TRUE(point.ok()) << point.error().message;
  const Seconds time = point.value().time_per_epoch;
  EXPECT_NEAR(measured.batch / time.count() / measured.tokens_per_second, 1.0, 0.125);
  const Joules energy = point.value().average_power * time * measured.gpus;
  EXPECT_NEAR(energy.value() / measured.batch / measured.joules_per_token, 1.0, 0.125);
}

INSTANTIATE_TEST_SUITE_P(H100, MeasuredPoint,
                         ::testing::Values(Measured{"llama-3.1-8b", 1, 8, 1067, 0.455},
                                           Measured{"llama-3.1-8b", 1, 64, 5161, 0.119},
                                           Measured{"llama-3.1-8b", 1, 256, 9046, 0.077},
                                           Measured{"llama-3.1-8b", 1, 512, 9846, 0.070},
                                           Measured{"llama-3.1-70b", 4, 8, 470, 3.76},
                                           Measured{"llama-3.1-70b", 4, 128, 3876, 0.563},
                                           Measured{"llama-3.1-70b", 4, 898, 6827, 0.373}));

TEST(IterationLawTest, CostOfTheWholeIsTheSumOfItsParts) {
  const IterationParts parts(Model("qwen3-30b-a3b"), 2);
  const std::vector<IterationWork> pieces = {parts.Fixed(), parts.Experts(20), parts.Decode(3, 900),
                                             parts.Decode(1, 40),
                                             parts.Prompt({.start = 512, .tokens = 16})};
  const IterationLaw law(Part(), 1500_MHz);
  IterationWork whole{.gpus = 2};
  IterationCost sum;
  for (const IterationWork& piece : pieces) {
    whole = whole + piece;
    sum.time += law.Cost(piece).time;
    sum.energy += law.Cost(piece).energy;
  }
  EXPECT_NEAR(law.Cost(whole).time / sum.time, 1.0, 1e-12);
  EXPECT_NEAR(law.Cost(whole).energy / sum.energy, 1.0, 1e-12);
}

TEST(IterationLawTest, SplittingAPromptCostsOnlyTheSecondReadingOfItsContext) {
  const LanguageModel& model = Model("llama-3.1-8b");
  const IterationParts parts(model, 1);
  const IterationWork whole = parts.Prompt({.start = 0, .tokens = 4096});
  const IterationWork split =
      parts.Prompt({.start = 0, .tokens = 2048}) + parts.Prompt({.start = 2048, .tokens = 2048});
  EXPECT_NEAR(split.operations / whole.operations, 1.0, 1e-12);
  EXPECT_NEAR(split.bytes - whole.bytes, model.kv_bytes() * 2048, 1.0);
}

TEST(IterationLawTest, WindowedLayersLookAtTheLastTokensOnly) {
  LanguageModel model = Model("llama-3.1-8b");
  const double plain = IterationParts(model, 1).Decode(1, model.SeenContext(1000)).bytes;
  model.windowed_layers = model.layers / 2;
  model.window = 200;
  EXPECT_DOUBLE_EQ(model.SeenContext(100), 100);
  EXPECT_DOUBLE_EQ(model.SeenContext(1000), 600);
  EXPECT_NEAR(IterationParts(model, 1).Decode(1, model.SeenContext(1000)).bytes / plain, 0.6, 1e-9);

  // A prompt looks at what its tokens would, one after the other.
  const IterationParts parts(model, 1);
  const IterationWork prompt = parts.Prompt({.start = 150, .tokens = 300});
  double operations = 0;
  for (int token = 151; token <= 450; ++token)
    operations += parts.Decode(1, model.SeenContext(token)).operations;
  EXPECT_NEAR(prompt.operations / operations, 1.0, 1e-9);
  const IterationWork split =
      parts.Prompt({.start = 150, .tokens = 100}) + parts.Prompt({.start = 250, .tokens = 200});
  EXPECT_NEAR(split.operations / prompt.operations, 1.0, 1e-9);
}

TEST(IterationLawTest, BlockScaledExpertsFillTheirTilesWhateverTheBatch) {
  LanguageModel model = Model("qwen3-235b-a22b-fp8");
  ASSERT_TRUE(model.block_scaled());
  const double tiles = IterationParts(model, 8).Fixed().operations;
  EXPECT_NEAR(IterationParts(model, 4).Fixed().operations / tiles, 2.0, 1e-9);
  model.scales = WeightScales::kPerChannel;
  EXPECT_EQ(IterationParts(model, 8).Fixed().operations, 0.0);

  EXPECT_FALSE(Model("qwen3-235b-a22b").block_scaled());       // 16 bits.
  EXPECT_FALSE(Model("gpt-oss-20b").block_scaled());           // 4 bits.
  EXPECT_FALSE(Model("llama-3.1-405b-fp8").block_scaled());    // No experts.
  EXPECT_FALSE(Model("llama-4-maverick-fp8").block_scaled());  // A scale per channel.
}

TEST(IterationLawTest, EnergyOverClockIsUShapedInBothPhases) {
  const GpuModel& a100 = *FindGpuModel("A100").value();
  const IterationParts parts(Model("llama-3.1-8b"), 1);
  const std::vector<IterationWork> phases = {
      parts.Fixed() + parts.Decode(32, 32 * 500.0),
      parts.Fixed() + parts.Prompt({.start = 0, .tokens = 2048})};
  for (const GpuModel* gpu : {&Part(), &a100})
    for (const IterationWork& work : phases) {
      std::vector<double> energies;
      for (const Hertz clock : GraphicsClocks(*gpu))
        energies.push_back(IterationLaw(*gpu, clock).Cost(work).energy.value());
      const auto least = std::min_element(energies.begin(), energies.end());
      EXPECT_LT(*least, 0.9 * energies.back());
      EXPECT_LT(*least, 0.9 * energies.front());
      EXPECT_TRUE(std::is_sorted(least, energies.end()));
      EXPECT_TRUE(std::is_sorted(std::make_reverse_iterator(least + 1), energies.rend()));
    }
}

TEST(PredictIterationTest, PowerLimitSelectsTheHighestClockThatFits) {
  const IterationWork work = Chat(Model("llama-3.1-8b"), 1, 256);
  const auto limited =
      PredictIteration(Part(), work, {.power_limit = 450_W, .clock_cap = std::nullopt});
  ASSERT_TRUE(limited.ok());
  EXPECT_LE(limited.value().average_power, 450_W);
  EXPECT_LT(limited.value().graphics_clock, Part().graphics_clock.max);
  const Hertz next = limited.value().graphics_clock + Part().graphics_clock_step;
  EXPECT_GT(IterationLaw(Part(), next).Cost(work).power(), 450_W);
}

TEST(PredictIterationTest, LimitBelowTheLowestClockStretchesTime) {
  const IterationWork work = Chat(Model("llama-3.1-8b"), 1, 256);
  const IterationLaw lowest(Part(), Part().graphics_clock.min);
  const Watts least = lowest.Cost(work).power();
  GpuModel tight = Part();
  tight.limit_range.min = least * 0.7;
  const auto point =
      PredictIteration(tight, work, {.power_limit = least * 0.7, .clock_cap = std::nullopt});
  ASSERT_TRUE(point.ok());
  EXPECT_NEAR(point.value().average_power / (least * 0.7), 1.0, 1e-9);
  EXPECT_GT(point.value().time_per_epoch, lowest.Cost(work).time);
}

TEST(PredictIterationTest, EmptyWorkIsRefused) {
  const auto point = PredictIteration(Part(), {}, FullPower(Part()));
  ASSERT_FALSE(point.ok());
  EXPECT_EQ(point.error().code, ErrorCode::kInvalidArgument);
}

TEST(LanguageModelTest, ExpertsReadGrowWithTheBatchUpToAll) {
  const LanguageModel& model = Model("qwen3-30b-a3b");
  // One token reads what is active for it.
  EXPECT_NEAR(model.WeightBytesRead(1) / (2 * model.active_parameters), 1.0, 1e-9);
  EXPECT_LT(model.WeightBytesRead(16), model.WeightBytesRead(64));
  EXPECT_NEAR(model.WeightBytesRead(1e4) / model.weight_bytes, 1.0, 1e-9);
}

TEST(LanguageModelTest, OnlyTheExpertsOfFourBitModelsArePacked) {
  const LanguageModel& model = Model("gpt-oss-20b");
  const double shared = model.parameters - model.expert_parameters();
  EXPECT_NEAR(model.shared_weight_bytes(), 2.0 * shared, 1.0);
  EXPECT_LT(model.expert_weight_bytes() / model.expert_parameters(), 0.6);
  const LanguageModel& eight = Model("qwen3-235b-a22b-fp8");
  EXPECT_NEAR(eight.expert_weight_bytes() / eight.expert_parameters(), 1.0, 1e-9);
}

TEST(LanguageModelTest, LayersOfAPartAreAtMostAll) {
  LanguageModel model = Model("gpt-oss-20b");
  model.windowed_layers = model.layers + 1;
  EXPECT_FALSE(CheckLanguageModel(model).ok());
  model = Model("gpt-oss-20b");
  model.expert_layers = model.layers + 1;
  EXPECT_FALSE(CheckLanguageModel(model).ok());
  model = Model("gpt-oss-20b");
  model.window = 0;
  EXPECT_FALSE(CheckLanguageModel(model).ok());
}

TEST(LanguageModelTest, SoleExpertsThatWouldBeTooNarrowSitInEverySecondLayer) {
  for (const LanguageModel& known : LanguageModels()) {
    LanguageModel described = known;
    described.width = 0;  // As somebody has it who knows the size of the model alone.
    described.expert_layers = 0;
    EXPECT_EQ(described.mixture_layers(), known.mixture_layers()) << known.name;
  }
  LanguageModel told = Model("llama-4-maverick-fp8");
  told.expert_layers = told.layers;
  EXPECT_EQ(told.mixture_layers(), told.layers);
}

TEST(LanguageModelTest, UnknownNameListsTheKnownOnes) {
  const auto found = FindLanguageModel("gpt-17");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, ::testing::HasSubstr("llama-3.1-8b"));
  EXPECT_TRUE(FindLanguageModel("Llama-3.1-8B").ok());
}

TEST(LanguageModelTest, EveryModelOfTheCatalogueIsSound) {
  for (const LanguageModel& model : LanguageModels()) {
    const auto checked = CheckLanguageModel(model);
    EXPECT_TRUE(checked.ok()) << checked.error().message;
  }
}

}  // namespace
}  // namespace zeus::sim
