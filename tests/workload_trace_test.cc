#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/device/sim/testing/loads.h"
#include "zeus/device/sim/testing/trace_accuracy.h"

namespace zeus::sim::testing {
namespace workload_trace_test {

// Compares the catalogue with the traces it was fitted to. They are not part of the repository;
// without them the tests are skipped.
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

// Tests the simulated GPU, not only the catalogue: it runs each recorded job until it is warm, and
// then for an hour.
TEST_F(WorkloadTraceTest, TheSimulatedGpuAgreesWithTheTraces) {
  std::vector<double> time_errors;
  std::vector<double> power_errors;
  for (const PowerRecord& record : traces_.power) {
    const auto done =
        RunWarm(*record.model, *record.workload, record.batch_size, record.power_limit);
    ASSERT_TRUE(done.ok()) << done.error().message;
    time_errors.push_back(std::abs(done.value().time_per_epoch / record.time_per_epoch - 1.0));
    power_errors.push_back(std::abs(done.value().average_power / record.average_power - 1.0));
  }
  EXPECT_LE(Mean(time_errors), 0.04);
  EXPECT_LE(Quantile(time_errors, 0.95), 0.15);
  EXPECT_LE(Mean(power_errors), 0.03);
  EXPECT_LE(Quantile(power_errors, 0.95), 0.15);
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

}  // namespace workload_trace_test
}  // namespace zeus::sim::testing
