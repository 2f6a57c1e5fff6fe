#include "zeus/optimizer/batch_size/zeus_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "zeus/base/units.h"

namespace zeus {
namespace zeus_policy_test {

using namespace literals;

PolicySpec Spec() {
  return {.name = "zeus", .batch_sizes = {8, 16, 32, 64}, .default_batch_size = 32, .seed = 5};
}

// The epochs of these runs cost 10 J each unless a test says otherwise.
RunResult Result(const Choice& choice, bool converged, int epochs, Joules epoch_cost = 10_J) {
  return {.run = {.gpu_model = "V100", .batch_size = choice.batch_size, .role = choice.role},
          .converged = converged,
          .epochs = epochs,
          .cost = epochs * epoch_cost,
          .recurrence_cost = epochs * epoch_cost,
          .epoch_cost = epoch_cost};
}

Choice Ask(ZeusPolicy& policy, bool exploring = false) {
  return policy.Choose({.gpu_model = "V100", .exploring = exploring});
}

int Budget(const ZeusPolicy& policy, Joules epoch_cost, int attempt = 0) {
  return policy.EpochBudget({.attempt = attempt, .gpu_model = "V100", .batch_size = 8}, epoch_cost);
}

// Explores to the end; every run converges after `epochs` epochs.
void Prune(ZeusPolicy& policy, const std::map<int, int>& epochs) {
  while (policy.stage() == "pruning") {
    const Choice choice = Ask(policy);
    policy.Observe(Result(choice, true, epochs.at(choice.batch_size)));
  }
}

TEST(ZeusPolicyTest, ExploresByPruningThenSamples) {
  ZeusPolicy policy(Spec());
  std::vector<int> explored;
  while (policy.stage() == "pruning") {
    const Choice choice = Ask(policy);
    EXPECT_EQ(choice.role, RunRole::kExploring);
    explored.push_back(choice.batch_size);
    policy.Observe(Result(choice, true, choice.batch_size == 32 ? 5 : 6));
  }
  EXPECT_THAT(explored, ::testing::ElementsAre(32, 16, 8, 64, 32, 16, 8, 64));
  EXPECT_EQ(policy.stage(), "sampling");
  // All costs were equal: the beliefs are point masses.
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(Ask(policy), (Choice{.batch_size = 32, .role = RunRole::kExploiting}));
}

TEST(ZeusPolicyTest, ConcurrentRunsOfTheExplorationUseTheBestBatchSizeKnown) {
  ZeusPolicy policy(Spec());
  const Choice exploring = Ask(policy);
  EXPECT_EQ(Ask(policy, true), (Choice{.batch_size = 32, .role = RunRole::kConcurrent}));
  policy.Observe(Result(exploring, true, 5));
  policy.Observe(Result(Ask(policy), true, 3));
  const Choice next = Ask(policy);
  EXPECT_EQ(next.batch_size, 8);
  EXPECT_EQ(Ask(policy, true), (Choice{.batch_size = 16, .role = RunRole::kConcurrent}));
}

TEST(ZeusPolicyTest, ResultsOfConcurrentAndLateRunsTeachWithoutAdvancingTheExploration) {
  ZeusPolicy policy(Spec());
  const Choice exploring = Ask(policy);
  const Choice concurrent = Ask(policy, true);
  ASSERT_EQ(concurrent.batch_size, exploring.batch_size);
  policy.Observe(Result(concurrent, true, 4));
  EXPECT_EQ(Ask(policy), exploring);
  EXPECT_EQ(policy.Beliefs("V100")[2].runs, 1);
  policy.Observe(Result(exploring, true, 4));
  EXPECT_EQ(Ask(policy).batch_size, 16);
  policy.Observe(Result(exploring, true, 4));  // The run ends after it was given up.
  EXPECT_EQ(Ask(policy).batch_size, 16);
  EXPECT_EQ(policy.Beliefs("V100")[2].runs, 3);
}

TEST(ZeusPolicyTest, ResultsAfterTheExplorationAreNotLost) {
  ZeusPolicy policy(Spec());
  Prune(policy, {{8, 6}, {16, 6}, {32, 5}, {64, 6}});
  policy.Observe(Result({.batch_size = 8, .role = RunRole::kConcurrent}, true, 1));
  policy.Observe(Result({.batch_size = 8, .role = RunRole::kExploring}, true, 1));
  EXPECT_EQ(policy.Beliefs("V100")[0].runs, 4);
}

TEST(ZeusPolicyTest, NothingStopsRunsBeforeSomethingConverged) {
  ZeusPolicy policy(Spec());
  EXPECT_EQ(Budget(policy, 1e9_J), 100);
  policy.Observe(Result(Ask(policy), false, 100));
  EXPECT_EQ(Budget(policy, 1e9_J), 100);
  EXPECT_EQ(Ask(policy).batch_size, 64);
}

TEST(ZeusPolicyTest, RunsAreStoppedAtBetaTimesTheLeastCostOfAConvergedRecurrence) {
  ZeusPolicy policy(Spec());
  RunResult first = Result(Ask(policy), true, 5);
  first.recurrence_cost = 70_J;  // Includes a failed try before it.
  policy.Observe(first);
  EXPECT_EQ(Budget(policy, 10_J), 14);
  EXPECT_EQ(Budget(policy, 10.01_J), 13);
  EXPECT_EQ(Budget(policy, 140_J), 1);
  EXPECT_EQ(Budget(policy, 141_J), 0);
  EXPECT_EQ(Budget(policy, 0.1_J), 100);
  // A cheap failure says nothing about what convergence costs.
  policy.Observe(Result(Ask(policy), false, 1));
  EXPECT_EQ(Budget(policy, 10_J), 14);
  policy.Observe(Result(Ask(policy), true, 3));
  EXPECT_EQ(Budget(policy, 10_J), 6);
}

// 5 epochs cost 5 c; at beta 2 exactly 10 epochs are allowed, whatever c is.
TEST(ZeusPolicyTest, ACostThatEqualsTheBoundIsAllowed) {
  for (int i = 1; i < 1000; ++i) {
    ZeusPolicy policy(Spec());
    const Joules epoch_cost(i / 7.0);
    policy.Observe(Result(Ask(policy), true, 5, epoch_cost));
    ASSERT_EQ(Budget(policy, epoch_cost), 10) << i;
  }
}

TEST(ZeusPolicyTest, ARecurrenceEndsSomeTimeAndBetaCanBeAbsent) {
  ZeusPolicy policy(Spec());
  policy.Observe(Result(Ask(policy), true, 1));
  EXPECT_EQ(Budget(policy, 10_J, 18), 2);
  EXPECT_EQ(Budget(policy, 10_J, 19), 100);
  PolicySpec patient = Spec();
  patient.beta.reset();
  ZeusPolicy other(patient);
  other.Observe(Result(Ask(other), true, 1));
  EXPECT_EQ(Budget(other, 1e9_J), 100);
}

TEST(ZeusPolicyTest, ARunThatIsNotWorthStartingCountsAsAVeryDearOne) {
  ZeusPolicy policy(Spec());
  Prune(policy, {{8, 6}, {16, 6}, {32, 5}, {64, 6}});
  policy.Observe(Result({.batch_size = 16, .role = RunRole::kExploiting}, false, 0));
  // 100 * 2 * 50 J, and two runs of 60 J.
  EXPECT_DOUBLE_EQ(policy.Beliefs("V100")[1].cost->value(), (10000.0 + 120) / 3);
}

TEST(ZeusPolicyTest, ARoundInWhichEverythingFailsEndsInSampling) {
  ZeusPolicy policy(Spec());
  for (int run = 0; policy.stage() == "pruning"; ++run) {
    ASSERT_LT(run, 10);
    policy.Observe(Result(Ask(policy), run < 4, 5));
  }
  std::set<int> sampled;
  for (int i = 0; i < 200; ++i) sampled.insert(Ask(policy).batch_size);
  EXPECT_GT(sampled.size(), 1);
}

TEST(ZeusPolicyTest, OneBatchSizeIsEnough) {
  PolicySpec spec = Spec();
  spec.batch_sizes = {32};
  ZeusPolicy policy(spec);
  Prune(policy, {{32, 5}});
  EXPECT_EQ(Ask(policy).batch_size, 32);
}

TEST(ZeusPolicyTest, AWindowLetsItLeaveTheOldOptimum) {
  PolicySpec spec = Spec();
  for (const auto& [window, leaves] : std::map<int, bool>{{5, true}, {0, false}}) {
    spec.window = window;
    ZeusPolicy policy(spec);
    Prune(policy, {{8, 9}, {16, 8}, {32, 5}, {64, 9}});
    for (int i = 0; i < 50; ++i) policy.Observe(Result(Ask(policy), true, 5));
    // The data drift: what was best takes 12 epochs from now on.
    int chosen = 0;
    for (int i = 0; i < 20; ++i) {
      const Choice choice = Ask(policy);
      chosen = choice.batch_size;
      policy.Observe(Result(choice, true, chosen == 32 ? 12 : 8 + i % 2));
    }
    EXPECT_EQ(chosen != 32, leaves) << window;
  }
}

TEST(ZeusPolicyTest, AWindowForgetsALeastCostThatCannotBeReachedAnyMore) {
  PolicySpec spec = Spec();
  spec.window = 4;
  ZeusPolicy policy(spec);
  policy.Observe(Result(Ask(policy), true, 1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Budget(policy, 10_J), 2);
    policy.Observe(Result({.batch_size = 32, .role = RunRole::kExploiting}, false, 2));
  }
  policy.Observe(Result({.batch_size = 32, .role = RunRole::kExploiting}, false, 2));
  EXPECT_EQ(Budget(policy, 10_J), 100);
}

TEST(ZeusPolicyTest, CostsAreTranslatedToAnotherGpuModel) {
  ZeusPolicy policy(Spec());
  Prune(policy, {{8, 6}, {16, 5}, {32, 7}, {64, 8}});
  EXPECT_EQ(policy.Best("V100"), 16);
  // There, large batch sizes cost half.
  for (const auto& [batch_size, cost] : std::map<int, double>{{8, 10}, {16, 10}, {32, 5}, {64, 5}})
    policy.LearnEpochCost("A40", batch_size, Joules(cost));
  EXPECT_EQ(policy.Best("A40"), 32);
  EXPECT_EQ(policy.Choose({.gpu_model = "A40"}).batch_size, 32);
  EXPECT_EQ(policy.Choose({.gpu_model = "V100"}).batch_size, 16);
  EXPECT_DOUBLE_EQ(policy.Beliefs("A40")[2].cost->value(), 35);
  EXPECT_TRUE(policy.Beliefs("A40")[2].epoch_cost_profiled);
  EXPECT_FALSE(policy.Beliefs("H100")[2].epoch_cost_profiled);
  EXPECT_EQ(policy.ProfiledEpochCost("A40", 64), 5_J);
  // The bound is twice 35 J there.
  EXPECT_EQ(policy.EpochBudget({.gpu_model = "A40", .batch_size = 32}, 5_J), 14);
}

TEST(ZeusPolicyTest, ExplanationsAreAboutTheChoiceAndDrawNothing) {
  ZeusPolicy policy(Spec());
  std::set<int> drawn;
  for (int i = 0; i < 60; ++i) {
    const Situation situation{.recurrence = i, .gpu_model = "V100"};
    const Situation meanwhile{.recurrence = i, .gpu_model = "V100", .exploring = true};
    if (policy.stage() == "pruning") {
      EXPECT_EQ(policy.Explain(meanwhile).choice, policy.Choose(meanwhile));
    }
    const Explanation told = policy.Explain(situation);
    EXPECT_EQ(policy.Explain(situation).choice, told.choice);
    const Choice choice = policy.Choose(situation);
    EXPECT_EQ(told.choice, choice) << told.why;
    EXPECT_THAT(told.why, ::testing::HasSubstr(std::to_string(choice.batch_size)));
    EXPECT_THAT(told.outlook, ::testing::StartsWith(told.settled ? "Done" : "Still"));
    if (policy.stage() == "sampling") drawn.insert(choice.batch_size);
    policy.Observe(Result(choice, true, 5 + (choice.batch_size / 8 + i) % 3));
  }
  EXPECT_GT(drawn.size(), 1U);  // Draws that differ were explained.
}

TEST(ZeusPolicyTest, ItIsSettledWhenOthersAreHardlyDrawnAnyMore) {
  ZeusPolicy policy(Spec());
  Prune(policy, {{8, 9}, {16, 5}, {32, 9}, {64, 9}});
  const Explanation told = policy.Explain({.gpu_model = "V100"});
  EXPECT_TRUE(told.settled);
  EXPECT_EQ(told.outlook,
            "Done learning for now: others than batch size 16 run in at most 0.0 % of "
            "recurrences.");
}

TEST(ZeusPolicyTest, BeliefsTellWhatWasPruned) {
  ZeusPolicy policy(Spec());
  EXPECT_EQ(policy.Beliefs("V100")[0].state, ArmState::kUntried);
  policy.Observe(Result(Ask(policy), true, 5));    // 32
  policy.Observe(Result(Ask(policy), false, 10));  // 16
  EXPECT_EQ(policy.Beliefs("V100")[1].state, ArmState::kDropped);
  EXPECT_EQ(policy.Beliefs("V100")[2].state, ArmState::kCandidate);
  EXPECT_EQ(policy.Beliefs("V100")[2].epochs, 5);
}

}  // namespace zeus_policy_test
}  // namespace zeus
