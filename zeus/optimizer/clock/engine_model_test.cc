#include "zeus/optimizer/clock/engine_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zeus {
namespace engine_model_test {

// An engine whose weights are read at the speed of the memory, which slows down below half of the
// highest clock.
struct Engine {
  static EngineTimes Times(double clock) {
    const double memory = std::max(1.0, 0.5 / clock);
    return {.iteration = 0.007 * memory,
            .token = 60e-6 * memory + 25e-6 / clock,
            .prompt = 23e-6 / clock};
  }
  static double Joules(const EngineWork& work, double clock) {
    return (3 * work.iterations + 0.06 * work.decoded + 0.025 * work.prompt) *
           (0.4 + 0.6 * clock * clock);
  }
  static constexpr double kIdle = 70;
};

// Two seconds with this batch and these prompt tokens per iteration.
void Watch(EngineModel& model, double clock, double batch, double prompt) {
  const EngineTimes times = Engine::Times(clock);
  const double time = times.iteration + times.token * batch + times.prompt * prompt;
  const double iterations = 2.0 / time;
  const EngineWork work{.busy = 2.0,
                        .iterations = iterations,
                        .decoded = iterations * batch,
                        .prompt = iterations * prompt};
  model.Observe(work, 2.0, clock, clock);
  model.EndWindow(Engine::Joules(work, clock) + Engine::kIdle * 2.0);
}

void WatchMany(EngineModel& model, double clock) {
  for (const double batch : {1.0, 4.0, 16.0, 40.0})
    for (const double prompt : {0.0, 60.0, 300.0}) Watch(model, clock, batch, prompt);
}

void WatchIdle(EngineModel& model) {
  model.Observe({}, 2.0, 1.0, 1.0);
  model.EndWindow(Engine::kIdle * 2.0);
}

TEST(EngineModelTest, TimesAreLearnedAtEveryClock) {
  EngineModel model;
  EXPECT_FALSE(model.knows_time());
  for (const double clock : {1.0, 0.8, 0.6, 0.4, 0.25}) WatchMany(model, clock);
  ASSERT_TRUE(model.knows_time());
  for (const double clock : {1.0, 0.7, 0.5, 0.3}) {
    const EngineTimes learned = model.TimesAt(clock, clock);
    const EngineTimes truth = Engine::Times(clock);
    EXPECT_NEAR(learned.iteration / truth.iteration, 1.0, 0.02) << clock;
    EXPECT_NEAR(learned.token / truth.token, 1.0, 0.1) << clock;
    EXPECT_NEAR(learned.prompt / truth.prompt, 1.0, 0.02) << clock;
  }
}

TEST(EngineModelTest, AtOneClockPromptsCountAsGoingWithItsInverse) {
  EngineModel model;
  WatchMany(model, 1.0);
  const EngineTimes half = model.TimesAt(0.5, 0.5);
  EXPECT_NEAR(half.prompt / Engine::Times(1.0).prompt, 2.0, 0.05);
  EXPECT_NEAR(half.iteration / Engine::Times(1.0).iteration, 1.0, 0.05);
}

TEST(EngineModelTest, AnEngineThatCannotKeepUpTakesForever) {
  const EngineTimes times = Engine::Times(1.0);
  EXPECT_GT(EngineModel::SteadyIteration(times, {.tokens = 1000, .prompt = 5000}), times.iteration);
  EXPECT_TRUE(std::isinf(
      EngineModel::SteadyIteration(times, {.tokens = 1000, .prompt = 1.1 / times.prompt})));
}

TEST(EngineModelTest, EnergyRatiosAreThoseMeasured) {
  EngineModel model;
  WatchIdle(model);
  for (const double clock : {1.0, 0.8, 0.6, 0.4}) WatchMany(model, clock);
  ASSERT_TRUE(model.knows_energy());
  EXPECT_NEAR(model.idle_watts(), Engine::kIdle, 1e-9);
  for (const double clock : {1.0, 0.8, 0.7, 0.6, 0.4})
    EXPECT_NEAR(model.RatioAt(clock) / (0.4 + 0.6 * clock * clock), 1.0, 0.03) << clock;
  const EngineDemand demand{.tokens = 800, .prompt = 3000};
  EXPECT_LT(model.PowerAt(0.6, 0.6, demand), 0.8 * model.PowerAt(1.0, 1.0, demand));
}

TEST(EngineModelTest, WindowsWithDifferentClocksTeachTimeButNotEnergy) {
  EngineModel model;
  WatchMany(model, 1.0);
  model.Observe({.busy = 1, .iterations = 100, .decoded = 100}, 1, 0.5, 0.5);
  model.Observe({.busy = 1, .iterations = 100, .decoded = 100}, 1, 0.7, 0.7);
  model.EndWindow(500);
  EXPECT_EQ(model.EvidenceAt(0.6), 0);
}

TEST(EngineModelTest, KnowledgeCarriesOver) {
  EngineModel model;
  WatchIdle(model);
  for (const double clock : {1.0, 0.8, 0.6, 0.4, 0.25}) WatchMany(model, clock);
  const EngineModel next(model.knowledge());
  EXPECT_TRUE(next.knows_time());
  EXPECT_TRUE(next.knows_energy());
  EXPECT_EQ(next.idle_watts(), model.idle_watts());
  for (const double clock : {1.0, 0.6, 0.3}) {
    EXPECT_NEAR(next.TimesAt(clock, clock).prompt / model.TimesAt(clock, clock).prompt, 1.0, 1e-9);
    EXPECT_NEAR(next.RatioAt(clock) / model.RatioAt(clock), 1.0, 1e-9);
  }
}

TEST(EngineModelTest, EmptyOrBrokenKnowledgeIsNoKnowledge) {
  const EngineModel empty(EngineKnowledge{});
  EXPECT_FALSE(empty.knows_time());
  EXPECT_FALSE(empty.knows_energy());
  const EngineModel broken(EngineKnowledge{.clocks = {-1, 0, 7}, .ratios = {1, 1}});
  EXPECT_FALSE(broken.knows_energy());
}

}  // namespace engine_model_test
}  // namespace zeus
