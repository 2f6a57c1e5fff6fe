// Tests with several ranks, each a thread with its own device and clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "zeus/training/testing/thread_ranks.h"
#include "zeus/training/testing/training_bench.h"
#include "zeus/training/training_loop.h"

namespace zeus {
namespace training_ranks_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using zeus::testing::Group;
using zeus::testing::GroupMember;
using zeus::testing::TrainingBench;

// Trains on ranks of 100, 200 and 300 W, whose steps take 1, 2 and 3 s.
std::vector<TrainingSummary> TrainTogether(
    const TrainingOptions& options,
    const std::function<void(TrainingLoop& loop, int rank, int epoch)>& end_of_epoch) {
  constexpr int kRanks = 3;
  Group group(kRanks);
  std::vector<TrainingSummary> summaries(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupMember member(group, rank);
      TrainingBench bench(Watts(100.0 * (rank + 1)));
      TrainingOptions own = options;
      own.collective = &member;
      TrainingLoop loop(bench.monitor, own);
      for (const int epoch : loop.Epochs()) {
        for ([[maybe_unused]] const int batch : loop.Batches(std::vector<int>{1, 2}))
          bench.clock.Advance(Seconds(rank + 1));
        end_of_epoch(loop, rank, epoch);
      }
      summaries[static_cast<std::size_t>(rank)] = loop.Summary();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return summaries;
}

TEST(TrainingRanksTest, EnergyIsSummedAndTheSlowestRankGivesTheTime) {
  const auto summaries = TrainTogether({.max_epochs = 2, .eta = 0.5, .max_power = 400_W},
                                       [](TrainingLoop&, int, int) {});
  for (const TrainingSummary& summary : summaries) {
    ASSERT_EQ(summary.epochs, 2);
    EXPECT_DOUBLE_EQ(summary.amounts.time.count(), 2 * 6);
    const double energy = 2 * (100 * 2 + 200 * 4 + 300 * 6);
    EXPECT_NEAR(summary.amounts.energy.value(), energy, 3);
    EXPECT_EQ(summary.amounts.energy, summaries[0].amounts.energy);
    ASSERT_TRUE(summary.amounts.cost);
    EXPECT_NEAR(summary.amounts.cost->value(), 0.5 * energy + 0.5 * (3 * 400) * 12, 2);
  }
}

TEST(TrainingRanksTest, RankZeroDecidesWhetherTheTargetIsReached) {
  const auto summaries = TrainTogether({.max_epochs = 9, .target_metric = 0.5},
                                       [](TrainingLoop& loop, int rank, int epoch) {
                                         // Rank 1 has none of its own, rank 2 is too early.
                                         if (rank == 0) loop.ReportMetric(0.2 * epoch);
                                         if (rank == 2) loop.ReportMetric(1.0);
                                       });
  for (const TrainingSummary& summary : summaries) {
    EXPECT_EQ(summary.epochs, 4);
    EXPECT_EQ(summary.reason, StopReason::kTargetReached);
    EXPECT_EQ(summary.best_metric, summaries[0].best_metric);
  }
}

TEST(TrainingRanksTest, AllStopWhenOneIsTold) {
  const auto summaries =
      TrainTogether({.max_epochs = 9}, [](TrainingLoop& loop, int rank, int epoch) {
        if (rank == 1 && epoch == 1) loop.Stop();
      });
  for (const TrainingSummary& summary : summaries) {
    EXPECT_EQ(summary.epochs, 2);
    EXPECT_EQ(summary.amounts.steps, 4);
    EXPECT_EQ(summary.reason, StopReason::kStoppedByUser);
  }
}

TEST(TrainingRanksTest, TheCostOfAllIsBounded) {
  // 2800 J per epoch over all ranks.
  const auto summaries = TrainTogether({.max_epochs = 9, .cost_bound = 3000_J, .eta = 1},
                                       [](TrainingLoop&, int, int) {});
  for (const TrainingSummary& summary : summaries) {
    EXPECT_EQ(summary.epochs, 2);
    EXPECT_EQ(summary.amounts.steps, 4);
    EXPECT_EQ(summary.reason, StopReason::kCostBound);
  }
}

class LostGroup final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status Sum(std::span<double>) override { return --calls_left < 0 ? Lost() : Ok(); }
  Status Max(std::span<double>) override { return Ok(); }
  Status Broadcast(std::span<double>, int) override { return Ok(); }

  int calls_left = 0;

 private:
  static Status Lost() { return Error{ErrorCode::kUnavailable, "rank 1 is gone"}; }
};

TEST(TrainingRanksTest, WhenTheOthersAreGoneTrainingEnds) {
  for (const int calls : {0, 1, 3}) {
    TrainingBench bench(100_W);
    LostGroup group;
    group.calls_left = calls;
    TrainingLoop loop(bench.monitor, {.collective = &group});
    int epochs = 0;
    for ([[maybe_unused]] const int epoch : loop.Epochs()) ++epochs;
    EXPECT_EQ(epochs, calls);
    EXPECT_EQ(loop.Summary().reason, StopReason::kOthersGone);
  }
}

}  // namespace training_ranks_test
}  // namespace zeus
