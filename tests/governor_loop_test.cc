// The governor in closed loop with the simulated inference engine.
#include "tests/governor_loop.h"

#include <gtest/gtest.h>

namespace zeus::testing {
namespace governor_loop_test {

ServiceTargets Strict() { return {.ttft = Seconds(1), .tpot = Seconds(0.05)}; }

ServedLoad Full(const RequestLoad& load) { return Serve(load, {}).value(); }
ServedLoad Governed(const RequestLoad& load, GovernorMode mode = GovernorMode::kActive) {
  return Serve(load, {.governor = GovernorOptions{.targets = Strict(), .clocks = {}, .mode = mode}})
      .value();
}

double Saving(const ServedLoad& served, const ServedLoad& full) {
  return 1.0 - served.energy / full.energy;
}

TEST(GovernorLoopTest, ACalmLoadTakesAThirdLessEnergyInTime) {
  const RequestLoad load = Regular(2, Seconds(400), 800, 150);
  const ServedLoad full = Full(load);
  const ServedLoad governed = Governed(load);
  ASSERT_EQ(governed.requests.size(), load.size());
  EXPECT_GT(Saving(governed, full), 0.33);
  EXPECT_LE(MissedShare(governed, Strict()), MissedShare(full, Strict()) + 0.01);
  // Its own account of what it saved is near the truth.
  const double claimed =
      governed.governor->saved / (governed.governor->saved + governed.governor->used);
  EXPECT_NEAR(claimed, Saving(governed, full), 0.12);
}

TEST(GovernorLoopTest, ALoadBeyondTheEngineIsServedAsAtTheHighestClock) {
  const RequestLoad load = Regular(22, Seconds(120), 2000, 60);
  const ServedLoad full = Full(load);
  const ServedLoad governed = Governed(load);
  EXPECT_GT(MissedShare(full, Strict()), 0.5);
  EXPECT_EQ(MissedShare(governed, Strict()), MissedShare(full, Strict()));
}

TEST(GovernorLoopTest, AnObserverChangesNothing) {
  const RequestLoad load = Regular(2, Seconds(200), 800, 150);
  const ServedLoad full = Full(load);
  const ServedLoad observed = Governed(load, GovernorMode::kObserver);
  EXPECT_EQ(observed.changes, 0U);
  EXPECT_NEAR(observed.energy / full.energy, 1.0, 1e-9);
  EXPECT_GT(observed.governor->saved, Joules(0));
}

class GovernorTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto conversation = ReadRequestTrace(LlmDataFolder() / "azure_llm_2023_conversation.csv");
    auto code = ReadRequestTrace(LlmDataFolder() / "azure_llm_2023_code.csv");
    if (!conversation.ok() || !code.ok())
      GTEST_SKIP() << "no Azure traces in " << LlmDataFolder()
                   << " (ZEUS_LLM_DATA_DIR names another folder)";
    conversation_ = std::move(conversation).value();
    code_ = std::move(code).value();
  }

  RequestLoad conversation_;
  RequestLoad code_;
};

TEST_F(GovernorTraceTest, ConversationsSaveMoreThanAtAnyFixedClockThatServesThemAsWell) {
  const RequestLoad load = AtSpeed(conversation_, 1.0, Seconds(900));
  const ServedLoad full = Full(load);
  const ServedLoad governed = Governed(load);
  const double misses = MissedShare(governed, Strict());
  EXPECT_LE(misses, MissedShare(full, Strict()) + 0.01);
  for (const unsigned megahertz : {1200U, 1050U, 900U}) {
    const ServedLoad fixed = Serve(load, {.fixed = Hertz::FromMega(megahertz)}).value();
    if (MissedShare(fixed, Strict()) <= misses + 0.005) {
      EXPECT_GT(Saving(governed, full), Saving(fixed, full)) << megahertz << " MHz";
    }
  }
}

TEST_F(GovernorTraceTest, BurstsThatTheHighestClockMissesAreMissedNoMoreOften) {
  const RequestLoad load = AtSpeed(code_, 1.0, Seconds(900));
  const ServedLoad full = Full(load);
  const ServedLoad governed = Governed(load);
  ASSERT_GT(MissedShare(full, Strict()), 0.1);
  EXPECT_LE(MissedShare(governed, Strict()), MissedShare(full, Strict()) + 0.002);
  EXPECT_GT(Saving(governed, full), 0.0);
}

TEST_F(GovernorTraceTest, ASaturatedTraceFindsItStandingStill) {
  const RequestLoad load = AtSpeed(conversation_, 3.0, Seconds(300));
  const ServedLoad full = Full(load);
  const ServedLoad governed = Governed(load);
  EXPECT_EQ(MissedShare(governed, Strict()), MissedShare(full, Strict()));
  EXPECT_LE(governed.changes, 2U);
}

}  // namespace governor_loop_test
}  // namespace zeus::testing
