#include "examples/drift/drift_study.h"

#include <gmock/gmock.h>

#include <numeric>

namespace zeus::examples {
namespace drift_study_test {

// The best batch size is 16 in the first half of the slices and 128 in the second, where 16 takes
// five times as long as before.
DriftTable TwoHalves(int slices) {
  DriftTable table{.slices = slices, .repetitions = 1, .max_epochs = 60, .default_batch_size = 32};
  const auto arm = [slices](int batch_size, double cost, int before, int after) {
    DriftTable::Arm made{.batch_size = batch_size, .epoch_cost = Joules(cost)};
    for (int slice = 0; slice < slices; ++slice)
      made.epochs.push_back({slice < slices / 2 ? before : after});
    return made;
  };
  table.arms = {arm(16, 100, 4, 20), arm(32, 80, 8, 14), arm(64, 70, 12, 12), arm(128, 65, 20, 10)};
  return table;
}

PolicySpec MakePolicySpec(const DriftTable& table, const std::string& policy, int window) {
  PolicySpec spec{.name = policy,
                  .default_batch_size = table.default_batch_size,
                  .max_epochs = table.max_epochs,
                  .window = window,
                  .seed = 1};
  for (const DriftTable::Arm& arm : table.arms) spec.batch_sizes.push_back(arm.batch_size);
  return spec;
}

TEST(DriftStudyTest, TheOracleFollowsTheOptimum) {
  const DriftTable table = TwoHalves(20);
  const auto outcomes = RunOracle(table);
  EXPECT_EQ(outcomes.front().batch_size, 16);
  EXPECT_EQ(outcomes.back().batch_size, 128);
  EXPECT_EQ(outcomes.front().cost, Joules(400));
  EXPECT_EQ(outcomes.back().cost, Joules(650));
}

TEST(DriftStudyTest, WithAWindowAPolicyLeavesTheOldOptimum) {
  const DriftTable table = TwoHalves(60);
  for (const char* policy : {"zeus", "knowledge_gradient"}) {
    const auto outcomes = RunPolicy(table, MakePolicySpec(table, policy, 8));
    ASSERT_TRUE(outcomes.ok());
    // The policy uses the old best batch size before the drift and has left it afterwards.
    int old_before = 0;
    int old_after = 0;
    for (int slice = 20; slice < 30; ++slice)
      old_before += outcomes.value()[static_cast<std::size_t>(slice)].batch_size == 16 ? 1 : 0;
    for (int slice = 50; slice < 60; ++slice)
      old_after += outcomes.value()[static_cast<std::size_t>(slice)].batch_size == 16 ? 1 : 0;
    EXPECT_GE(old_before, 7) << policy;
    EXPECT_LE(old_after, 2) << policy;
  }
}

TEST(DriftStudyTest, EveryTryIsPaidFor) {
  const DriftTable table = TwoHalves(30);
  const auto outcomes = RunPolicy(table, MakePolicySpec(table, "zeus", 0));
  ASSERT_TRUE(outcomes.ok());
  for (int slice = 0; slice < table.slices; ++slice) {
    const SliceOutcome& outcome = outcomes.value()[static_cast<std::size_t>(slice)];
    EXPECT_GE(outcome.cost, table.ExpectedCost(table.BestArm(slice), slice));
    EXPECT_GE(outcome.tries, 1);
  }
}

}  // namespace drift_study_test
}  // namespace zeus::examples
