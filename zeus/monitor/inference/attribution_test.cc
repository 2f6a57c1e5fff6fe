#include "zeus/monitor/inference/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "zeus/base/random.h"
#include "zeus/monitor/inference/testing/attribution_case.h"

namespace zeus {
namespace attribution_test {

using testing::AttributionCase;
using testing::AttributionScore;
using testing::Load;
using testing::PromptCounts;

TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

AttributionScore ScoreOf(const AttributionCase& scenario) {
  auto score = testing::Score(scenario);
  EXPECT_TRUE(score.ok()) << score.error().message;
  return score.ok() ? score.value() : AttributionScore{};
}

double Sum(const EnergyAccounts& accounts) {
  double sum = (accounts.idle + accounts.other).value();
  for (const auto& engine : accounts.engines) sum += (engine.prefill + engine.decode).value();
  return sum;
}

class SyntheticLoadTest : public ::testing::TestWithParam<double> {};

// The rates are those of a server that is mostly idle, well used, and near its limit.
TEST_P(SyntheticLoadTest, RequestsGetTheirShareAndEveryJouleHasAnAccount) {
  const AttributionScore score =
      ScoreOf({.engines = {testing::SyntheticLoad(5, GetParam(), Seconds(120))}});
  EXPECT_EQ(score.settled, score.requests);
  EXPECT_GT(score.requests, 50U);
  EXPECT_LT(score.energy.median, 0.03) << score.law;
  EXPECT_LT(score.energy.ninetieth, 0.10) << score.law;
  EXPECT_LT(std::abs(score.conservation), 1e-9);
  EXPECT_GE(score.coverage, 0.9);
  EXPECT_GE(score.provisional_within, 0.95);
  EXPECT_NEAR(score.requests_over_truth, 1, 0.01);
  for (const auto& rule : score.rules) EXPECT_LT(score.energy.median, rule.median);
  EXPECT_LT(score.mean_lag, Seconds(0.5));
}
INSTANTIATE_TEST_SUITE_P(Rates, SyntheticLoadTest, ::testing::Values(0.6, 3.0, 8.0));

TEST(AttributionTest, RecordedConversationsAreWithinTheGoals) {
  if (!std::filesystem::exists(testing::RecordedLoadDirectory()))
    GTEST_SKIP() << "no recorded traces in " << testing::RecordedLoadDirectory()
                 << " (set ZEUS_LLM_TRACE_DIR)";
  const AttributionScore score =
      ScoreOf({.engines = {testing::RecordedLoad("conversation", 1, Seconds(150)).value()}});
  EXPECT_LT(score.energy.median, 0.02);
  EXPECT_LT(score.energy.ninetieth, 0.06);
  EXPECT_LT(score.prefill.median, 0.04);
  EXPECT_LT(score.decode.median, 0.04);
}

// Where prompts always wait, no iteration shows how long decoding alone takes. One iteration that
// is found where there is none gets prompt work a second time, which spoils everything after it.
TEST(AttributionTest, SaturatedServersKeepTheirLawWhateverTheDelays) {
  constexpr std::uint64_t kSeeds = 4;
  double median = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const AttributionScore score =
        ScoreOf({.engines = {testing::SyntheticLoad(9, 20, Seconds(60))}, .seed = seed});
    EXPECT_EQ(score.settled, score.requests);
    EXPECT_GE(score.coverage, 0.9) << seed;
    EXPECT_LT(score.energy.median, 0.08) << seed;
    median += score.energy.median / static_cast<double>(kSeeds);
  }
  EXPECT_LT(median, 0.05);
}

TEST(AttributionTest, LateTokensAreBroughtToTheirIterations) {
  const AttributionScore score =
      ScoreOf({.engines = {testing::SyntheticLoad(6, 2, Seconds(100))}, .jitter = Seconds(0.005)});
  EXPECT_LT(score.energy.median, 0.05);
}

TEST(AttributionTest, UnknownPromptsAreMeasuredByTheirTime) {
  const AttributionScore score = ScoreOf({.engines = {testing::SyntheticLoad(7, 2, Seconds(100))},
                                          .counts = PromptCounts::kNever,
                                          .bytes_scatter = 0.3});
  EXPECT_LT(score.energy.median, 0.04);
  EXPECT_GE(score.coverage, 0.9);
}

// An iteration reads more experts the more tokens it works on, which a fixed energy cannot explain.
TEST(AttributionTest, ExpertsOfAMixtureArePartOfTheLaw) {
  const AttributionScore score =
      ScoreOf({.engines = {testing::SyntheticLoad(4, 3, Seconds(150))}, .model = "qwen3-30b-a3b"});
  EXPECT_LT(score.energy.median, 0.015) << score.law;
  EXPECT_LT(score.energy.ninetieth, 0.06) << score.law;
  EXPECT_GE(score.coverage, 0.9);
}

TEST(AttributionTest, StrangersWorkIsNobodysRequest) {
  const AttributionScore score =
      ScoreOf({.engines = {testing::SyntheticLoad(8, 1, Seconds(180))}, .stranger = Watts(220)});
  ASSERT_GT(score.stranger, Joules(5000));
  EXPECT_NEAR(score.other / score.stranger, 1, 0.1);
  EXPECT_LT(score.energy.median, 0.05);
}

// The remaining tests tell what no engine would do, or what servers leave out.
class OddNewsTest : public ::testing::Test {
 protected:
  void Measure(double until, double watts) {
    for (; time_ < until - 1e-9; time_ += 0.1)
      attribution_.EnergyMeasured(At(time_ + 0.1), Joules(watts * 0.1), Joules(0.1));
  }
  // A response of `tokens`, 10 ms apart, that begins 50 ms after its arrival.
  void Serve(InferenceRequestId id, double begin, int tokens) {
    attribution_.RequestArrived(id, {.engine = engine_, .time = At(begin), .prompt_bytes = 400});
    for (int i = 0; i < tokens; ++i) attribution_.TokensArrived(id, At(begin + 0.05 + 0.01 * i));
    attribution_.RequestEnded(id, At(begin + 0.05 + 0.01 * (tokens - 1)),
                              RequestOutcome::kCompleted,
                              {.prompt = 100, .output = static_cast<double>(tokens)});
  }
  void ExpectConserved() {
    const double measured = attribution_.accounts().measured.value();
    EXPECT_TRUE(std::isfinite(measured));
    EXPECT_NEAR(Sum(attribution_.accounts()), measured, 1e-6 * (measured + 1));
  }

  InferenceAttribution attribution_;
  EngineIndex engine_ = attribution_.AddEngine({.name = "engine"});
  double time_ = 0;
};

TEST_F(OddNewsTest, RequestThatWasAloneGetsAllThatWasNotIdle) {
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  Measure(10, 70);
  Serve(1, 10, 100);
  Measure(12, 400);
  Measure(20, 70);
  const auto settled = attribution_.TakeSettled();
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_TRUE(settled[0].energy.final);
  // It ran for 1.04 s at 400 W; the rest of its two seconds is idle at an unknown power.
  EXPECT_NEAR(settled[0].energy.energy.value(), 1.04 * 400, 45);
  EXPECT_GT(settled[0].energy.decode, settled[0].energy.prefill);
  EXPECT_FALSE(attribution_.Estimate(1).has_value());
  ExpectConserved();
}

TEST_F(OddNewsTest, FigureIsThereAtOnceAndFinalWhenTheSensorHasShownTheEnd) {
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  for (int i = 0; i < 20; ++i) {
    Serve(static_cast<InferenceRequestId>(i), i + 0.2, 50);
    Measure(i + 1, 300);
  }
  Serve(100, 20.2, 50);
  const auto provisional = attribution_.Estimate(100);
  ASSERT_TRUE(provisional.has_value());
  EXPECT_FALSE(provisional->final);
  EXPECT_GT(provisional->energy, Joules(0));
  EXPECT_GT(provisional->sigma, Joules(0));
  attribution_.TakeSettled();
  Measure(22, 300);
  const auto settled = attribution_.TakeSettled();
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_NEAR(settled[0].energy.energy / provisional->energy, 1, 0.1);
}

TEST_F(OddNewsTest, NonsenseChangesNoSum) {
  Random random(1);
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  const double odd[] = {std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity(), -5, 0, 1e12};
  for (int i = 0; i < 20000; ++i) {
    const InferenceRequestId id = random.Below(30);
    double time = time_ + random.Uniform(-3, 3);
    if (random.Below(500) == 0) time = odd[random.Below(2)];
    switch (random.Below(7)) {
      case 0:
        attribution_.RequestArrived(id, {.engine = random.Below(3),
                                         .time = At(time),
                                         .prompt_bytes = odd[random.Below(5)],
                                         .sequences = static_cast<unsigned>(random.Below(4)),
                                         .streamed = random.Below(2) == 0});
        break;
      case 1:
      case 2:
        attribution_.TokensArrived(id, At(time), random.Below(20) == 0 ? odd[random.Below(5)] : 1);
        break;
      case 3:
        attribution_.RequestEnded(id, At(time), static_cast<RequestOutcome>(random.Below(3)),
                                  {.prompt = odd[random.Below(5)], .cached = odd[random.Below(5)]});
        break;
      case 4:
        attribution_.EnergyMeasured(At(time), Joules(odd[random.Below(4)]),
                                    Joules(odd[random.Below(5)]));
        break;
      case 5:
        Measure(time_ + 0.2, 300);
        break;
      default:
        attribution_.RunningRequestsSeen(random.Below(3), At(time), odd[random.Below(5)]);
        (void)attribution_.Estimate(id);
    }
    for (const SettledRequest& settled : attribution_.TakeSettled()) {
      ASSERT_TRUE(std::isfinite(settled.energy.energy.value())) << i;
      ASSERT_GE(settled.energy.energy, Joules(0)) << i;
      ASSERT_TRUE(std::isfinite(settled.energy.sigma.value())) << i;
    }
  }
  ExpectConserved();
}

TEST_F(OddNewsTest, ResponsesInOnePieceAndEmbeddingsAreMetered) {
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  Measure(5, 70);
  double energy = 0;
  for (int i = 0; i < 10; ++i) {
    const auto id = static_cast<InferenceRequestId>(i);
    const double begin = 5.0 + i;
    attribution_.RequestArrived(
        id, {.engine = engine_, .time = At(begin), .prompt_bytes = 2000, .streamed = false});
    attribution_.RequestEnded(id, At(begin + 0.6), RequestOutcome::kCompleted,
                              {.prompt = 500, .output = i % 2 == 0 ? 50 : 0});
    Measure(begin + 0.6, 300);
    Measure(begin + 1, 70);
  }
  Measure(20, 70);
  const auto settled = attribution_.TakeSettled();
  ASSERT_EQ(settled.size(), 10U);
  for (const SettledRequest& one : settled) energy += one.energy.energy.value();
  EXPECT_NEAR(energy, 10 * 0.6 * 300, 0.25 * 10 * 0.6 * 300);
  ExpectConserved();
}

TEST_F(OddNewsTest, ServersOwnTimesDivideAResponseInOnePiece) {
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  Measure(5, 70);
  // Nothing else is known: only the server can tell how long each prompt took.
  const double decode_times[] = {0.2, 0.8};
  for (int i = 0; i < 2; ++i) {
    const auto id = static_cast<InferenceRequestId>(i);
    const double begin = 5.0 + 2 * i;
    attribution_.RequestArrived(
        id, {.engine = engine_, .time = At(begin), .prompt_bytes = 2000, .streamed = false});
    attribution_.RequestEnded(id, At(begin + 1), RequestOutcome::kCompleted,
                              {.prompt = 500, .output = 40}, {.decode = Seconds(decode_times[i])});
    Measure(begin + 1, 300);
    Measure(begin + 2, 70);
  }
  Measure(15, 70);
  const auto settled = attribution_.TakeSettled();
  ASSERT_EQ(settled.size(), 2U);
  for (const SettledRequest& one : settled) {
    EXPECT_NEAR(one.energy.energy.value(), 300, 30);
    EXPECT_EQ(one.energy.output_tokens, 40);
  }
  EXPECT_GT(settled[1].energy.decode, 2 * settled[0].energy.decode);
  ExpectConserved();
}

TEST_F(OddNewsTest, EnginesOwnGaugeShowsWorkOfOthers) {
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  for (int i = 0; i < 30; ++i) {
    Serve(static_cast<InferenceRequestId>(i), i + 0.05, 90);
    attribution_.RunningRequestsSeen(engine_, At(i + 0.5), 4);
    attribution_.RunningRequestsSeen(engine_, At(i + 0.9), 4);
    Measure(i + 1, 400);
  }
  Measure(35, 70);
  // Three of four sequences are somebody else's.
  EXPECT_GT(attribution_.accounts().other.value(), 0.3 * 30 * 0.9 * 400);
  ExpectConserved();
}

TEST_F(OddNewsTest, ServerThatHangsDoesNotHoldUpTheAccounts) {
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  Serve(1, 0.5, 20);
  attribution_.RequestArrived(2, {.engine = engine_, .time = At(2), .prompt_bytes = 4000});
  Measure(60, 100);
  EXPECT_GT(attribution_.accounts().measured.value(), 55 * 100);
  attribution_.RequestEnded(2, At(60), RequestOutcome::kFailed);
  Measure(65, 100);
  EXPECT_EQ(attribution_.TakeSettled().size(), 2U);
  ExpectConserved();
}

TEST_F(OddNewsTest, MemoryOfALawComesBackWithItsSetting) {
  attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  attribution_.SettingChanged(At(0), "1980 MHz");
  int id = 0;
  const auto run = [&](double seconds, double watts) {
    const double until = time_ + seconds;
    while (time_ < until - 1e-9) {
      Serve(static_cast<InferenceRequestId>(++id), time_ + 0.05, 85);
      Measure(time_ + 1, watts);
    }
  };
  run(40, 600);
  const double fast = attribution_.Law(engine_).energy.fixed.value();
  attribution_.SettingChanged(At(time_), "1000 MHz");
  run(40, 300);
  EXPECT_LT(attribution_.Law(engine_).energy.fixed.value(), 0.8 * fast);
  attribution_.SettingChanged(At(time_), "1980 MHz");
  EXPECT_NEAR(attribution_.Law(engine_).energy.fixed.value(), fast, 0.15 * fast);
}

}  // namespace attribution_test
}  // namespace zeus
