#include "zeus/monitor/inference/duration_model.h"

#include <gtest/gtest.h>

namespace zeus {
namespace {

constexpr double kFixed = 0.0068;
constexpr double kPerSequence = 75e-6;
constexpr double kPerPrompt = 27e-6;

double TrueDuration(const IterationLoad& load) {
  return kFixed * load.iterations + kPerSequence * load.sequences + kPerPrompt * load.prompt;
}

// Tells the model a stretch whose prompt tokens are known at once.
void LearnStretch(DurationModel& model, IterationLoad load, double duration) {
  const double tokens = load.prompt;
  load.prompt = 0;
  model.PromptKnown(model.OpenStretch(load, duration, 1), tokens, 0, 0);
}

DurationModel Taught() {
  DurationModel model;
  for (int i = 1; i <= 200; ++i) {
    const IterationLoad load{.iterations = 1, .sequences = static_cast<double>(i % 20)};
    model.LearnDecode(load, TrueDuration(load));
  }
  for (int i = 1; i <= 20; ++i) {
    const IterationLoad load{.iterations = 1, .sequences = 5, .prompt = 13.0 * i};
    LearnStretch(model, load, TrueDuration(load));
  }
  model.Update(1, 600);
  return model;
}

TEST(DurationModelTest, LearnsTheTimeOfAPromptToken) {
  EXPECT_NEAR(Taught().PerPrompt(0) / kPerPrompt, 1, 0.02);
  EXPECT_NEAR(Taught().fixed() / kFixed, 1, 0.02);
}

TEST(DurationModelTest, AStretchWithWrongBoundariesChangesLittle) {
  DurationModel model = Taught();
  const IterationLoad load{.iterations = 2, .sequences = 20, .prompt = 2800};
  const double truth = TrueDuration(load);
  for (const double duration : {1.8 * truth, 0.4 * truth}) {
    LearnStretch(model, load, duration);
    model.Update(1, 600);
    EXPECT_NEAR(model.PerPrompt(0) / kPerPrompt, 1, 0.1) << duration;
  }
}

TEST(DurationModelTest, ASpeedThatChangedIsLearnedNevertheless) {
  DurationModel model = Taught();
  for (int i = 1; i <= 60; ++i) {
    const IterationLoad load{.iterations = 1, .sequences = 5, .prompt = 4.0 * (i % 70 + 1)};
    LearnStretch(model, load, TrueDuration(load) + kPerPrompt * load.prompt);
    model.Update(60, 600);
  }
  EXPECT_NEAR(model.PerPrompt(0) / (2 * kPerPrompt), 1, 0.1);
}

}  // namespace
}  // namespace zeus
