#include "zeus/optimizer/batch_size/knowledge_gradient_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/base/random.h"
#include "zeus/base/units.h"
#include "zeus/optimizer/batch_size/policy.h"

namespace zeus {
namespace knowledge_gradient_policy_test {

using namespace literals;

PolicySpec Spec() {
  return {.name = "knowledge_gradient", .batch_sizes = {8, 16, 32, 64}, .default_batch_size = 32};
}

// A job whose functions define how many epochs its runs take and what each epoch costs.
struct FakeJob {
  std::function<int(int batch_size)> epochs;
  std::function<Joules(int batch_size)> epoch_cost = [](int) { return 10_J; };
  std::string gpu_model = "V100";
  std::int64_t recurrence = 0;

  RunResult Run(const BatchSizePolicy& policy, const Choice& choice, int attempt = 0) const {
    const PlannedRun run{.recurrence = recurrence,
                         .attempt = attempt,
                         .gpu_model = gpu_model,
                         .batch_size = choice.batch_size,
                         .role = choice.role};
    const Joules epoch_cost_of_run = epoch_cost(choice.batch_size);
    const int budget = policy.EpochBudget(run, epoch_cost_of_run);
    const int needed = epochs(choice.batch_size);
    const int done = std::min(needed, budget);
    return {.run = run,
            .converged = needed <= budget,
            .epochs = done,
            .cost = done * epoch_cost_of_run,
            .recurrence_cost = done * epoch_cost_of_run,
            .epoch_cost = epoch_cost_of_run};
  }

  // Runs one recurrence with all its tries; returns the batch size of the last one.
  int Recur(BatchSizePolicy& policy) {
    for (int attempt = 0;; ++attempt) {
      const Choice choice =
          policy.Choose({.recurrence = recurrence, .attempt = attempt, .gpu_model = gpu_model});
      const RunResult result = Run(policy, choice, attempt);
      policy.Observe(result);
      if (!result.converged && attempt < 20) continue;
      ++recurrence;
      return choice.batch_size;
    }
  }
};

TEST(KnowledgeGradientPolicyTest, BeginsWithTheDefaultAndWaitsForIt) {
  KnowledgeGradientPolicy policy(Spec());
  EXPECT_EQ(policy.Choose({}), (Choice{.batch_size = 32, .role = RunRole::kExploring}));
  EXPECT_EQ(policy.Choose({.recurrence = 1, .exploring = true}),
            (Choice{.batch_size = 32, .role = RunRole::kConcurrent}));
  EXPECT_EQ(policy.EpochBudget({.batch_size = 32}, 1_J), 100);
  EXPECT_EQ(policy.stage(), "starting");
}

TEST(KnowledgeGradientPolicyTest, FindsTheCheapestBatchSize) {
  const std::map<int, int> epochs = {{8, 9}, {16, 10}, {32, 14}, {64, 40}};
  const std::map<int, double> cost = {{8, 14}, {16, 9}, {32, 8}, {64, 7.5}};
  FakeJob job{.epochs = [&](int batch_size) { return epochs.at(batch_size); },
              .epoch_cost = [&](int batch_size) { return Joules(cost.at(batch_size)); }};
  KnowledgeGradientPolicy policy(Spec());
  for (int i = 0; i < 30; ++i) job.Recur(policy);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(job.Recur(policy), 16);
  EXPECT_EQ(policy.Best("V100"), 16);
  EXPECT_EQ(policy.stage(), "optimizing");
  EXPECT_NEAR(policy.Beliefs("V100")[1].cost->value(), 90, 5);
}

// Returns by how much all recurrences together cost more than with the default at the worst moment,
// as a share.
double WorstExcess(KnowledgeGradientPolicy& policy, FakeJob& job, int recurrences) {
  double spent = 0.0;
  double by_default = 0.0;
  double worst = 0.0;
  for (int i = 0; i < recurrences; ++i) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Choice choice = policy.Choose(
          {.recurrence = job.recurrence, .attempt = attempt, .gpu_model = job.gpu_model});
      const RunResult result = job.Run(policy, choice, attempt);
      policy.Observe(result);
      spent += result.cost.value();
      if (result.converged) break;
    }
    ++job.recurrence;
    by_default += job.epochs(32) * job.epoch_cost(32).value();
    worst = std::max(worst, spent / by_default - 1);
  }
  return worst;
}

TEST(KnowledgeGradientPolicyTest, ASafeJobDoesNotPayForWhatItLearnsMoreThanItMay) {
  // Every other batch size costs three times as much, which its neighbours do not show.
  const auto run = [](std::optional<double> safe) {
    KnowledgeGradientPolicy policy(Spec(), {.safe = safe});
    FakeJob job{.epochs = [](int batch_size) { return batch_size == 32 ? 10 : 30; }};
    return WorstExcess(policy, job, 40);
  };
  EXPECT_LE(run(0.0), 1e-9);
  EXPECT_LT(run(0.05), run(std::nullopt) / 2) << "no belief expects a jump, so 5 % may be exceeded";
}

TEST(KnowledgeGradientPolicyTest, ASafeJobTakesWhatIsSurelyCheaper) {
  KnowledgeGradientPolicy policy(Spec(), {.safe = 0.05});
  FakeJob job{.epochs = [](int) { return 12; },
              .epoch_cost = [](int batch_size) { return Joules(batch_size * 10.0); }};
  EXPECT_LE(WorstExcess(policy, job, 40), 0.05);
  EXPECT_EQ(policy.Best("V100"), 8);
  EXPECT_EQ(job.Recur(policy), 8);
}

TEST(KnowledgeGradientPolicyTest, ASafeJobSaysWhyItRunsTheDefault) {
  KnowledgeGradientPolicy policy(Spec(), {.safe = 0.0});
  FakeJob job{.epochs = [](int) { return 12; }};
  job.Recur(policy);
  const Explanation told = policy.Explain({.recurrence = 1, .gpu_model = "V100"});
  EXPECT_EQ(told.choice.batch_size, 32);
  EXPECT_EQ(told.why.find("The run takes batch size 32: with another one"), 0U) << told.why;
}

TEST(KnowledgeGradientPolicyTest, ASafeJobIsRestoredWithItsLedger) {
  KnowledgeGradientPolicy policy(Spec(), {.safe = 0.05});
  FakeJob job{.epochs = [](int batch_size) { return batch_size / 4 + 1; }};
  for (int i = 0; i < 12; ++i) {
    const auto restored = KnowledgeGradientPolicy::Restore(Spec(), policy.Save(), {.safe = 0.05});
    ASSERT_TRUE(restored.ok());
    EXPECT_EQ(restored.value().Save(), policy.Save());
    job.Recur(policy);
  }
  Json damaged = policy.Save();
  damaged.erase("safe");
  EXPECT_FALSE(KnowledgeGradientPolicy::Restore(Spec(), damaged, {.safe = 0.05}).ok());
}

TEST(KnowledgeGradientPolicyTest, WhileItExploresOthersRunTheLeader) {
  FakeJob job{.epochs = [](int) { return 10; }};
  KnowledgeGradientPolicy policy(Spec());
  job.Recur(policy);
  const Choice exploring = policy.Choose({.recurrence = 1, .gpu_model = "V100"});
  ASSERT_EQ(exploring.role, RunRole::kExploring);
  EXPECT_NE(exploring.batch_size, 32);
  EXPECT_EQ(policy.Choose({.recurrence = 2, .gpu_model = "V100", .exploring = true}),
            (Choice{.batch_size = 32, .role = RunRole::kConcurrent}));
}

TEST(KnowledgeGradientPolicyTest, ExplanationsAreAboutTheChoiceAndChangeNothing) {
  const std::map<int, double> cost = {{8, 14}, {16, 9}, {32, 8}, {64, 7.5}};
  FakeJob job{.epochs = [](int batch_size) { return batch_size == 64 ? 40 : 10; },
              .epoch_cost = [&](int batch_size) { return Joules(cost.at(batch_size)); }};
  KnowledgeGradientPolicy policy(Spec());
  int explored = 0;
  for (int i = 0; i < 60; ++i) {
    for (const bool exploring : {true, false}) {
      for (const int attempt : {0, 1}) {
        const Situation situation{.recurrence = job.recurrence,
                                  .attempt = attempt,
                                  .gpu_model = "V100",
                                  .exploring = exploring};
        const Json before = policy.Save();
        const Explanation told = policy.Explain(situation);
        EXPECT_EQ(policy.Save(), before);
        EXPECT_EQ(told.choice, policy.Choose(situation)) << told.why;
        EXPECT_NE(told.why.find(std::to_string(told.choice.batch_size)), std::string::npos)
            << told.why;
        EXPECT_TRUE(told.why.ends_with('.')) << told.why;
        const bool tries = attempt == 0 && !exploring && told.choice.role == RunRole::kExploring;
        if (tries) ++explored;
        // Apart from checkups, who is settled explores nothing.
        if (tries && told.settled) {
          EXPECT_NE(told.why.find("checks the beliefs"), std::string::npos) << told.why;
        }
        EXPECT_FALSE(exploring && told.settled);
      }
    }
    job.Recur(policy);
  }
  EXPECT_GE(explored, 3);
  const Explanation end = policy.Explain({.recurrence = 60, .gpu_model = "V100"});
  EXPECT_TRUE(end.settled);
  EXPECT_EQ(end.outlook,
            "Done learning for now: no other batch size is worth a try, and recurrence 80 checks "
            "that again.");
  EXPECT_EQ(end.why.find("The run takes batch size 32, which costs least as far as is known: 80.0"),
            0)
      << end.why;
}

TEST(KnowledgeGradientPolicyTest, BeforeAnythingHasConvergedItSaysSo) {
  const KnowledgeGradientPolicy policy(Spec());
  const Explanation told = policy.Explain({.gpu_model = "V100"});
  EXPECT_EQ(told.why,
            "No run under Zeus has reached the target yet: batch sizes are tried from the default "
            "outwards, and 32 is the nearest that has not failed.");
  EXPECT_EQ(told.outlook, "Still learning: no run under Zeus has reached the target yet.");
  EXPECT_FALSE(told.settled);
}

TEST(KnowledgeGradientPolicyTest, RetriesRunTheLeader) {
  FakeJob job{.epochs = [](int) { return 10; }};
  KnowledgeGradientPolicy policy(Spec());
  job.Recur(policy);
  EXPECT_EQ(policy.Choose({.recurrence = 1, .attempt = 1, .gpu_model = "V100"}),
            (Choice{.batch_size = 32, .role = RunRole::kExploiting}));
}

TEST(KnowledgeGradientPolicyTest, RunsOfBatchSizesThatConvergedMayTakeTwiceWhatIsExpected) {
  FakeJob job{.epochs = [](int) { return 10; }};
  KnowledgeGradientPolicy policy(Spec());
  job.Recur(policy);
  const PlannedRun run{.recurrence = 1, .gpu_model = "V100", .batch_size = 32};
  EXPECT_NEAR(policy.EpochBudget(run, 10_J), 20, 1);
  EXPECT_EQ(policy.EpochBudget(
                {.recurrence = 1, .attempt = 3, .gpu_model = "V100", .batch_size = 32}, 10_J),
            100);
  PolicySpec patient = Spec();
  patient.beta.reset();
  KnowledgeGradientPolicy other(patient);
  FakeJob again{.epochs = [](int) { return 10; }};
  again.Recur(other);
  EXPECT_EQ(other.EpochBudget(run, 10_J), 100);
}

TEST(KnowledgeGradientPolicyTest, ANewBatchSizeGetsOneEpochToShowItsCostThenNoMoreThanItIsWorth) {
  FakeJob job{.epochs = [](int) { return 10; }};
  KnowledgeGradientPolicy policy(Spec());
  job.Recur(policy);
  const PlannedRun run{.recurrence = 1, .gpu_model = "V100", .batch_size = 64};
  EXPECT_EQ(policy.EpochBudget(run, 1e6_J), 1);
  EXPECT_EQ(policy.EpochBudget(run, 15_J), 1);  // It is expected to need even more epochs.
  EXPECT_GT(policy.EpochBudget(run, 8_J), 13);
  EXPECT_LE(policy.EpochBudget(run, 8_J), 25);  // Twice the cost of the leader, which is 101 J.
  policy.LearnEpochCost("V100", 64, 1e6_J);
  EXPECT_EQ(policy.EpochBudget(run, 1e6_J), 0);
}

TEST(KnowledgeGradientPolicyTest, ABatchSizeThatIsStoppedTwiceIsDropped) {
  FakeJob job{.epochs = [](int batch_size) { return batch_size == 64 ? 1000 : 10; }};
  KnowledgeGradientPolicy policy(Spec());
  job.Recur(policy);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(policy.Beliefs("V100")[3].state, ArmState::kDropped);
    policy.Observe({.run = {.recurrence = 1, .gpu_model = "V100", .batch_size = 64},
                    .epochs = 2,
                    .cost = 20_J,
                    .epoch_cost = 10_J});
  }
  EXPECT_EQ(policy.Beliefs("V100")[3].state, ArmState::kDropped);
}

TEST(KnowledgeGradientPolicyTest, ADefaultThatNeverConvergesIsNotTheEnd) {
  FakeJob job{.epochs = [](int batch_size) { return batch_size == 8 ? 10 : 1000; }};
  KnowledgeGradientPolicy policy(Spec());
  EXPECT_EQ(job.Recur(policy), 8);
  EXPECT_EQ(job.Recur(policy), 8);
}

TEST(KnowledgeGradientPolicyTest, WhenNothingConvergesTheDefaultIsRunAgain) {
  FakeJob job{.epochs = [](int) { return 1000; }};
  KnowledgeGradientPolicy policy(Spec());
  EXPECT_EQ(job.Recur(policy), 32);
  EXPECT_EQ(policy.Choose({.recurrence = 1}).batch_size, 32);
}

TEST(KnowledgeGradientPolicyTest, EpochsLearnedOnOneGpuModelServeAnother) {
  const std::map<int, int> epochs = {{8, 9}, {16, 10}, {32, 14}, {64, 15}};
  FakeJob job{.epochs = [&](int batch_size) { return epochs.at(batch_size); },
              .epoch_cost = [](int) { return 8_J; }};
  KnowledgeGradientPolicy policy(Spec());
  for (int i = 0; i < 30; ++i) job.Recur(policy);
  ASSERT_LE(policy.Best("V100"), 16);
  for (const int batch_size : Spec().batch_sizes)
    policy.LearnEpochCost("A40", batch_size, Joules(batch_size < 32 ? 30 : 10));
  EXPECT_GE(policy.Best("A40"), 32);
  EXPECT_EQ(policy.Choose({.recurrence = 31, .gpu_model = "A40", .exploring = true}).batch_size,
            policy.Best("A40"));
}

class DriftTest : public ::testing::TestWithParam<int> {};  // The parameter is the window.

TEST_P(DriftTest, TwoSurprisesInARowReopenWhatWasSettled) {
  bool drifted = false;
  FakeJob job{.epochs = [&](int batch_size) {
    if (batch_size == 16) return drifted ? 60 : 10;
    if (batch_size == 64) return drifted ? 12 : 90;
    return drifted ? 30 : 20;
  }};
  PolicySpec spec = Spec();
  spec.window = GetParam();
  KnowledgeGradientPolicy policy(spec);
  for (int i = 0; i < 60; ++i) job.Recur(policy);
  ASSERT_EQ(policy.Best("V100"), 16);
  drifted = true;
  for (int i = 0; i < 60; ++i) job.Recur(policy);
  EXPECT_EQ(policy.Best("V100"), 64);
}

INSTANTIATE_TEST_SUITE_P(Windows, DriftTest, ::testing::Values(0, 10, 20));

TEST(KnowledgeGradientPolicyTest, ObservationsLeaveTheWindow) {
  PolicySpec spec = Spec();
  spec.window = 10;
  KnowledgeGradientPolicy policy(spec);
  FakeJob job{.epochs = [](int) { return 10; }};
  for (int i = 0; i < 100; ++i) job.Recur(policy);
  int runs = 0;
  for (const ArmBelief& arm : policy.Beliefs("V100")) runs += arm.runs;
  EXPECT_EQ(runs, 10);
  EXPECT_LT(policy.Save().dump().size(), 1500);
}

// Tests of data that drift (Zeus §6.4): a job over 38 slices of data, whose best batch size changes
// on the way.

constexpr int kSlices = 38;
constexpr int kDriftAt = 16;

// From the drift on, large batch sizes learn the data as badly as small ones did before.
double ExpectedEpochs(int batch_size, int slice) {
  const double best = slice < kDriftAt ? 128 : 16;
  return 12 * std::exp(0.15 * std::pow(std::log2(batch_size / best), 2));
}

Joules EpochCost(int batch_size) { return Joules(100 + 400.0 / batch_size); }

struct DriftingJob {
  PolicySpec spec;
  double cost = 0.0;    // Cost of all tries after the drift.
  double oracle = 0.0;  // Cost of the batch size that is best in each slice.

  void Run(std::uint64_t seed) {
    spec.seed = seed;
    const auto policy = MakePolicy(spec).value();
    Random random(seed);
    for (int slice = 0; slice < kSlices; ++slice) {
      const double spent = Recur(*policy, slice, random);
      if (slice < kDriftAt) continue;
      cost += spent;
      oracle += std::ranges::min(spec.batch_sizes | std::views::transform([&](int batch_size) {
                                   return ExpectedEpochs(batch_size, slice) *
                                          EpochCost(batch_size).value();
                                 }));
    }
  }

  double Recur(BatchSizePolicy& policy, int slice, Random& random) const {
    Joules spent{};
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Choice choice =
          policy.Choose({.recurrence = slice, .attempt = attempt, .gpu_model = "V100"});
      const Joules epoch_cost = EpochCost(choice.batch_size);
      RunResult result{.run = {.recurrence = slice,
                               .attempt = attempt,
                               .gpu_model = "V100",
                               .batch_size = choice.batch_size,
                               .role = choice.role},
                       .epoch_cost = epoch_cost};
      const int budget = policy.EpochBudget(result.run, epoch_cost);
      const int needed = static_cast<int>(
          std::lround(ExpectedEpochs(choice.batch_size, slice) * std::exp(0.05 * random.Normal())));
      result.converged = needed <= budget;
      result.epochs = std::min(needed, budget);
      result.cost = result.epochs * epoch_cost;
      spent += result.cost;
      result.recurrence_cost = spent;
      policy.Observe(result);
      if (result.converged) break;
    }
    return spent.value();
  }
};

// The cost after the drift, in units of the oracle's.
double CostAfterDrift(const std::string& policy, int window) {
  DriftingJob job{.spec = {.name = policy,
                           .batch_sizes = {8, 16, 32, 64, 128},
                           .default_batch_size = 64,
                           .window = window}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) job.Run(seed);
  return job.cost / job.oracle;
}

TEST(DriftingDataTest, AWindowLetsZeusLeaveTheOldOptimum) {
  const double with_window = CostAfterDrift("zeus", 4);
  const double without = CostAfterDrift("zeus", 0);
  RecordProperty("with_window", std::to_string(with_window));
  RecordProperty("without", std::to_string(without));
  EXPECT_LT(with_window - 1, 0.8 * (without - 1)) << with_window << ' ' << without;
}

// This policy notices a drift without a window, and a window does not make it worse.
TEST(DriftingDataTest, KnowledgeGradientFollowsWithAndWithoutAWindow) {
  const double zeus = CostAfterDrift("zeus", 4);
  EXPECT_LT(CostAfterDrift("knowledge_gradient", 0), zeus);
  EXPECT_LT(CostAfterDrift("knowledge_gradient", 10), zeus);
}

}  // namespace knowledge_gradient_policy_test
}  // namespace zeus
