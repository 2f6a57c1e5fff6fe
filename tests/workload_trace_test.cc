#include <gtest/gtest.h>

#include <filesystem>

#include "zeus/device/sim/testing/trace_accuracy.h"

namespace zeus::sim::testing {
namespace {

// The catalogue against the traces it was fitted to. They do not ship: without them this skips.
class WorkloadTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path directory = DefaultTraceDirectory();
    if (!std::filesystem::exists(directory / "summary_train.csv"))
      GTEST_SKIP() << "no traces in " << directory << " (ZEUS_TRACE_DIR names another directory)";
    auto traces = ReadTraces(directory);
    ASSERT_TRUE(traces.ok()) << traces.error().message;
    traces_ = std::move(traces).value();
    auto accuracies = Measure(traces_);
    ASSERT_TRUE(accuracies.ok()) << accuracies.error().message;
    accuracies_ = std::move(accuracies).value();
    all_ = Pool(accuracies_);
  }

  Traces traces_;
  std::map<std::string_view, Accuracy> accuracies_;
  Accuracy all_;
};

TEST_F(WorkloadTraceTest, EveryRecordIsCompared) {
  EXPECT_EQ(accuracies_.size(), 4);
  EXPECT_EQ(all_.time_errors.size(), traces_.power.size());
  EXPECT_EQ(all_.power_errors.size(), 1539);
  EXPECT_EQ(all_.choice_losses.size(), 24);
}

TEST_F(WorkloadTraceTest, TimePerEpochAgreesWithTheTraces) {
  EXPECT_LE(Mean(all_.time_errors), 0.04);
  EXPECT_LE(Quantile(all_.time_errors, 0.95), 0.15);
}

TEST_F(WorkloadTraceTest, AveragePowerAgreesWithTheTraces) {
  EXPECT_LE(Mean(all_.power_errors), 0.03);
  EXPECT_LE(Quantile(all_.power_errors, 0.95), 0.15);
}

TEST_F(WorkloadTraceTest, ChoosingByTheCatalogueCostsLittleInTheTraces) {
  EXPECT_LE(Mean(all_.choice_losses), 0.03);
}

TEST_F(WorkloadTraceTest, MeanEpochsAgreeWithTheRecordedRuns) {
  std::vector<double> errors;
  for (const Workload& workload : Workloads()) {
    for (const auto& [batch_size, runs] : traces_.epochs.at(workload.name)) {
      const auto mean = MeanEpochsToTarget(workload, batch_size);
      ASSERT_TRUE(mean.has_value()) << workload.name << ' ' << batch_size;
      errors.push_back(std::abs(*mean / Mean(runs) - 1.0));
    }
  }
  EXPECT_LE(Mean(errors), 0.05);
}

}  // namespace
}  // namespace zeus::sim::testing
