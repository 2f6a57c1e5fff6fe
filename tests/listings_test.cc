// Runs Listing 1 of the Zeus paper and the three listings of the talk, in our API, on simulated
// GPUs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ranges>
#include <string>

#include "zeus/training/global_power_limit_optimizer.h"
#include "zeus/training/testing/simulated_node.h"
#include "zeus/training/training_loop.h"

namespace zeus {
namespace listings_test {

using zeus::testing::SimulatedNode;

constexpr int kEpochs = 3;
const auto train_set = std::views::iota(0, 49);
const auto eval_set = std::views::iota(0, 5);

class ListingsTest : public ::testing::Test {
 protected:
  void Learn(int /*batch*/) { node_.Step(); }
  void Evaluate(int /*batch*/) { node_.Step(); }
  static double ValidationMetric(int epoch) { return 0.4 + 0.1 * epoch; }

  SimulatedNode node_{{"V100", "V100", "V100", "V100"}, {}};
  NodeMonitor& node_monitor_ = node_.monitor();
};

TEST_F(ListingsTest, PaperListing1) {
  TrainingLoop loop(node_monitor_, {.max_epochs = 100, .target_metric = 0.65});
  for (const int epoch : loop.Epochs()) {  // Ends at the target or at max_epochs.
    for (const int batch : loop.Batches(train_set)) Learn(batch);
    for (const int batch : eval_set) Evaluate(batch);
    loop.ReportMetric(ValidationMetric(epoch));
  }

  const TrainingSummary summary = loop.Summary();
  EXPECT_EQ(summary.reason, StopReason::kTargetReached);
  EXPECT_EQ(summary.epochs, 4);
  EXPECT_EQ(summary.amounts.steps, 4 * 49);
  EXPECT_GT(summary.amounts.cost, Joules(0));
}

TEST_F(ListingsTest, TalkMeasuringEnergy) {
  EnergyMonitor& monitor = node_monitor_.monitor();

  ASSERT_TRUE(monitor.BeginWindow("training").ok());
  Joules sum(0);
  for (int e = 0; e < kEpochs; ++e) {
    ASSERT_TRUE(monitor.BeginWindow(fmt::format("epoch {}", e)).ok());
    for (const int batch : train_set) Learn(batch);
    sum += monitor.EndWindow(fmt::format("epoch {}", e)).value().Sum().energy;
  }
  const Measurement training = monitor.EndWindow("training").value();

  EXPECT_EQ(training.devices.size(), 4u);
  EXPECT_NEAR(training.Sum().energy / sum, 1.0, 0.01);
}

TEST_F(ListingsTest, TalkPowerLimitOptimizer) {
  GlobalPowerLimitOptimizer optimizer(node_monitor_);

  for (int e = 0; e < kEpochs; ++e) {
    optimizer.OnEpochBegin();
    for (const int batch : train_set) {
      optimizer.OnStepBegin();
      Learn(batch);
      optimizer.OnStepEnd();
    }
    optimizer.OnEpochEnd();
  }

  EXPECT_TRUE(optimizer.done());
  EXPECT_EQ(optimizer.chosen().size(), 1u);
}

TEST_F(ListingsTest, TalkYouDefineWhatOptimalMeans) {
  GlobalPowerLimitOptimizer optimizer(node_monitor_, MaxSlowdownConstraint(1.1));

  TrainingLoop loop(node_monitor_, {.max_epochs = kEpochs, .callbacks = {&optimizer}});
  for ([[maybe_unused]] const int epoch : loop.Epochs())
    for (const int batch : loop.Batches(train_set)) Learn(batch);

  const Profile& profile = optimizer.profile();
  const auto chosen = MaxSlowdownConstraint(1.1).select(profile);
  ASSERT_TRUE(chosen.ok());
  const ProfilePoint& best = profile.points[chosen.value()];
  EXPECT_EQ(optimizer.chosen().front(), best.setting);
  EXPECT_LE(best.time_per_step, 1.1 * profile.points.front().time_per_step);
  EXPECT_LT(ToNumber(best.setting), 250);
}

}  // namespace listings_test
}  // namespace zeus
