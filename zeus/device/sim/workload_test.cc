#include "zeus/device/sim/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace zeus::sim {
namespace workload_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Workload& Job(std::string_view name) { return *FindWorkload(name).value(); }

std::vector<unsigned> Draws(const Workload& workload, unsigned batch_size, std::uint64_t seed,
                            int count) {
  Random random(seed);
  std::vector<unsigned> draws;
  for (int i = 0; i < count; ++i)
    if (const auto epochs = DrawEpochsToTarget(workload, batch_size, random))
      draws.push_back(*epochs);
  return draws;
}

TEST(WorkloadTest, TheSixWorkloadsOfThePaperAreThere) {
  std::vector<std::string_view> names;
  for (const Workload& workload : Workloads()) names.push_back(workload.name);
  EXPECT_THAT(names,
              ElementsAre("deepspeech2", "bert_qa", "bert_sa", "resnet50", "shufflenet", "neumf"));
}

TEST(WorkloadTest, AnUnknownNameListsTheKnownOnes) {
  const auto found = FindWorkload("resnet");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(found.error().message, HasSubstr("\"resnet\""));
  EXPECT_THAT(found.error().message, HasSubstr("deepspeech2, bert_qa, bert_sa, resnet50"));
}

TEST(WorkloadTest, BatchSizesAscendAndHoldTheDefault) {
  for (const Workload& workload : Workloads()) {
    EXPECT_TRUE(std::ranges::is_sorted(workload.batch_sizes));
    EXPECT_EQ(std::ranges::count(workload.batch_sizes, workload.default_batch_size), 1)
        << workload.name;
  }
}

TEST(WorkloadTest, TheLastStepOfAnEpochMayBeSmaller) {
  const Workload& cifar = Job("shufflenet");
  EXPECT_EQ(StepsPerEpoch(cifar, 1), 50'000);
  EXPECT_EQ(StepsPerEpoch(cifar, 1000), 50);
  EXPECT_EQ(StepsPerEpoch(cifar, 1024), 49);
  EXPECT_EQ(StepsPerEpoch(cifar, 1'000'000), 1);
  EXPECT_EQ(StepsPerEpoch(cifar, 0), 0);
}

TEST(WorkloadTest, BatchSizesThatFailedInEveryRunHaveNoMean) {
  EXPECT_FALSE(MeanEpochsToTarget(Job("resnet50"), 64));
  EXPECT_FALSE(MeanEpochsToTarget(Job("resnet50"), 8));
  EXPECT_FALSE(MeanEpochsToTarget(Job("deepspeech2"), 512));
  EXPECT_FALSE(MeanEpochsToTarget(Job("deepspeech2"), 4096));
  EXPECT_FALSE(MeanEpochsToTarget(Job("neumf"), 16));
  EXPECT_FALSE(MeanEpochsToTarget(Job("neumf"), 0));
  EXPECT_TRUE(Draws(Job("resnet50"), 64, 1, 100).empty());
}

TEST(WorkloadTest, ABatchSizeThatFailsSometimesFailsAsOftenAsRecorded) {
  // Four of five recorded runs.
  EXPECT_TRUE(MeanEpochsToTarget(Job("neumf"), 32));
  EXPECT_NEAR(static_cast<double>(Draws(Job("neumf"), 32, 1, 10'000).size()), 2'000, 150);
}

TEST(WorkloadTest, FailuresAreInterpolatedBetweenRecordedBatchSizes) {
  // 64 always fails, 128 never does.
  const auto converged = static_cast<double>(Draws(Job("resnet50"), 91, 1, 10'000).size());
  EXPECT_NEAR(converged, 5'000, 250);
}

TEST(WorkloadTest, SameSeedSameEpochs) {
  EXPECT_EQ(Draws(Job("shufflenet"), 128, 7, 50), Draws(Job("shufflenet"), 128, 7, 50));
  EXPECT_NE(Draws(Job("shufflenet"), 128, 7, 50), Draws(Job("shufflenet"), 128, 8, 50));
}

TEST(WorkloadTest, AFailingRunDoesNotShiftTheRunsAfterIt) {
  Random first(5);
  Random second(5);
  DrawEpochsToTarget(Job("resnet50"), 64, first);
  DrawEpochsToTarget(Job("resnet50"), 256, second);
  EXPECT_EQ(first.NextBits(), second.NextBits());
}

TEST(WorkloadTest, DrawsHaveTheStatedMean) {
  for (const Workload& workload : Workloads()) {
    for (const unsigned batch_size : workload.batch_sizes) {
      const auto mean = MeanEpochsToTarget(workload, batch_size);
      if (!mean) continue;
      const std::vector<unsigned> draws = Draws(workload, batch_size, 11, 20'000);
      double sum = 0;
      for (const unsigned epochs : draws) sum += epochs;
      EXPECT_NEAR(sum / static_cast<double>(draws.size()), *mean, 0.01 * *mean)
          << workload.name << ' ' << batch_size;
    }
  }
}

TEST(WorkloadTest, DrawsSpreadAsRecorded) {
  // shufflenet at 1024: the ten recorded runs have a standard deviation of ln N near 0.12.
  const std::vector<unsigned> draws = Draws(Job("shufflenet"), 1024, 3, 20'000);
  double sum = 0;
  double squares = 0;
  for (const unsigned epochs : draws) {
    sum += std::log(epochs);
    squares += std::log(epochs) * std::log(epochs);
  }
  const double mean = sum / static_cast<double>(draws.size());
  const double variance = squares / static_cast<double>(draws.size()) - mean * mean;
  EXPECT_NEAR(std::sqrt(variance), 0.12, 0.02);
}

TEST(WorkloadTest, VeryLargeBatchesNeedMoreEpochs) {
  EXPECT_GT(*MeanEpochsToTarget(Job("shufflenet"), 2048),
            *MeanEpochsToTarget(Job("shufflenet"), 128) * 5);
}

}  // namespace workload_test
}  // namespace zeus::sim
