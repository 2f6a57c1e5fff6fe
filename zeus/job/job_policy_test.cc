#include "zeus/job/job_policy.h"

#include <gtest/gtest.h>

#include <memory>

namespace zeus {
namespace job_policy_test {

// After one recurrence that cost 20 J with batch size 16: the bound of a run is 40 J.
class RunRulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto policy = MakePolicy({.name = "zeus", .batch_sizes = {8, 16}, .default_batch_size = 16});
    ASSERT_TRUE(policy.ok());
    policy_ = std::move(policy).value();
    const Choice choice = policy_->Choose({.gpu_model = "V100"});
    policy_->Observe(MakeResult(
        Plan({.gpu_model = "V100"}, choice),
        {.converged = true, .epochs = 2, .cost = Joules(20), .epoch_cost = Joules(10)}, Joules(0)));
  }

  PlannedRun Run(int attempt) const {
    return Plan({.recurrence = 1, .attempt = attempt, .gpu_model = "V100"}, {.batch_size = 8});
  }

  std::unique_ptr<BatchSizePolicy> policy_;
};

TEST_F(RunRulesTest, ARunIsStoppedWhereItsBudgetEnds) {
  const RunBound bound = ComputeBound(*policy_, Run(0), Joules(10), 100);
  EXPECT_TRUE(bound.begins);
  EXPECT_EQ(bound.last_epoch, 4);
}

TEST_F(RunRulesTest, ARunOfWhichOneEpochIsTooDearDoesNotBegin) {
  const RunBound bound = ComputeBound(*policy_, Run(0), Joules(50), 100);
  EXPECT_FALSE(bound.begins);
  EXPECT_EQ(bound.last_epoch, 1) << "once begun, it is stopped after its first epoch";
}

TEST_F(RunRulesTest, TheLastTryAlwaysBegins) {
  EXPECT_TRUE(ComputeBound(*policy_, Run(kMostAttempts - 1), Joules(50), 100).begins);
  EXPECT_FALSE(AnotherTryMayHelp(*policy_, Run(kMostAttempts - 1), true));
}

TEST_F(RunRulesTest, EpochsOfNoOrUnknownCostAreNoReasonToStop) {
  EXPECT_EQ(ComputeBound(*policy_, Run(0), Joules(0), 100).last_epoch, 100);
  EXPECT_EQ(ComputeBound(*policy_, Run(0), std::nullopt, 100).last_epoch, 100);
}

TEST_F(RunRulesTest, EarlierTriesCountForTheRecurrence) {
  const RunResult result = MakeResult(Run(1), {.epochs = 1, .cost = Joules(5)}, Joules(7));
  EXPECT_EQ(result.cost, Joules(5));
  EXPECT_EQ(result.recurrence_cost, Joules(12));
}

TEST_F(RunRulesTest, WhileABatchSizeWasNeverRunAnotherTryMayHelp) {
  EXPECT_TRUE(AnotherTryMayHelp(*policy_, Run(0), false));
  policy_->Observe(MakeResult(Run(0), {.epochs = 4, .cost = Joules(40)}, Joules(0)));
  EXPECT_FALSE(AnotherTryMayHelp(*policy_, Run(0), false));
  EXPECT_TRUE(AnotherTryMayHelp(*policy_, Run(0), true));
}

TEST_F(RunRulesTest, BatchSizesThatThePolicyNeverChoosesPromiseNothing) {
  const auto made =
      MakePolicy({.name = "default", .batch_sizes = {8, 16}, .default_batch_size = 8});
  ASSERT_TRUE(made.ok());
  BatchSizePolicy& policy = *made.value();
  EXPECT_TRUE(AnotherTryMayHelp(policy, Run(0), false));
  policy.Observe(MakeResult(Run(0), {.epochs = 100, .cost = Joules(40)}, Joules(0)));
  EXPECT_FALSE(AnotherTryMayHelp(policy, Run(0), false));
  EXPECT_TRUE(AnotherTryMayHelp(policy, Run(0), true));
}

}  // namespace job_policy_test
}  // namespace zeus
