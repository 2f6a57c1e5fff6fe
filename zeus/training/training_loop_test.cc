#include "zeus/training/training_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "zeus/training/testing/thread_ranks.h"
#include "zeus/training/testing/training_bench.h"

namespace zeus {
namespace training_loop_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using zeus::testing::TrainingBench;

// Records the calls that it gets.
class Diary final : public TrainingCallback {
 public:
  void OnTrainBegin() override { lines.emplace_back("train"); }
  void OnEpochBegin(std::int64_t epoch) override {
    lines.push_back("epoch" + std::to_string(epoch));
  }
  void OnStepBegin() override { lines.emplace_back("step"); }
  void OnStepEnd() override { lines.emplace_back("/step"); }
  void OnEpochEnd(std::int64_t epoch) override {
    lines.push_back("/epoch" + std::to_string(epoch));
  }
  void OnEvaluate(double metric) override { lines.push_back(metric > 0.5 ? "good" : "bad"); }
  void OnTrainEnd() override { lines.emplace_back("/train"); }

  std::vector<std::string> lines;
};

class TrainingLoopTest : public ::testing::Test {
 protected:
  // Trains one epoch with steps of a second each.
  template <class Source>
  int Train(TrainingLoop& loop, Source&& source) {
    int steps = 0;
    for ([[maybe_unused]] const auto& batch : loop.Batches(std::forward<Source>(source))) {
      bench_.clock.Advance(1s);
      ++steps;
    }
    return steps;
  }

  TrainingBench bench_{200_W};
  const std::vector<int> batches_ = {1, 2, 3};
};

TEST_F(TrainingLoopTest, StepsThatAreCalledOneByOneAreTheSame) {
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.max_epochs = 2, .callbacks = {&diary}});
  EXPECT_EQ(loop.epoch(), -1);
  for (bool more = loop.BeginTraining(); more; more = loop.NextEpoch()) {
    loop.BeginBatches();
    loop.BeginStep();
    bench_.clock.Advance(1s);
    loop.EndStep();
    loop.EndBatches();
    EXPECT_TRUE(loop.MayStep());
  }
  EXPECT_EQ(loop.epoch(), 1);
  EXPECT_THAT(diary.lines, ElementsAre("train", "epoch0", "step", "/step", "/epoch0", "epoch1",
                                       "step", "/step", "/epoch1", "/train"));
  EXPECT_EQ(loop.Summary().amounts.steps, 2);
}

TEST_F(TrainingLoopTest, CallbacksSeeTheCourseOfTheTraining) {
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.max_epochs = 5, .target_metric = 0.9, .callbacks = {&diary}});
  std::vector<int> epochs;
  for (const int epoch : loop.Epochs()) {
    epochs.push_back(epoch);
    for (const int batch : loop.Batches(std::vector<int>{1, 2}))
      diary.lines.push_back(std::to_string(batch));
    diary.lines.emplace_back("evaluation");
    loop.ReportMetric(epoch == 1 ? 0.95 : 0.1);
  }
  EXPECT_THAT(epochs, ElementsAre(0, 1));
  EXPECT_THAT(diary.lines,
              ElementsAre("train", "epoch0", "step", "1", "/step", "step", "2", "/step", "/epoch0",
                          "evaluation", "bad", "epoch1", "step", "1", "/step", "step", "2", "/step",
                          "/epoch1", "evaluation", "good", "/train"));
  EXPECT_EQ(loop.Summary().reason, StopReason::kTargetReached);
}

TEST_F(TrainingLoopTest, AnEpochIsMeasuredWithItsEvaluation) {
  TrainingLoop loop(bench_.monitor, {.max_epochs = 2, .eta = 0.25, .max_power = 300_W});
  for (const int epoch : loop.Epochs()) {
    Train(loop, batches_);
    bench_.clock.Advance(epoch == 0 ? 1s : 2s);
    loop.ReportMetric(0.5 + 0.1 * epoch);
  }
  const TrainingSummary summary = loop.Summary();
  EXPECT_EQ(summary.epochs, 2);
  EXPECT_EQ(summary.amounts.steps, 6);
  EXPECT_DOUBLE_EQ(summary.amounts.time.count(), 9);
  EXPECT_NEAR(summary.amounts.energy.value(), 1800, 1);
  EXPECT_GT(summary.amounts.energy_sigma, 0_J);
  ASSERT_TRUE(summary.amounts.cost);
  EXPECT_NEAR(summary.amounts.cost->value(), 0.25 * 1800 + 0.75 * 300 * 9, 1);
  EXPECT_NEAR(summary.amounts.cost_sigma.value(), 0.25 * summary.amounts.energy_sigma.value(),
              1e-9);
  EXPECT_EQ(summary.best_metric, 0.6);
  EXPECT_EQ(summary.reason, StopReason::kMaxEpochs);
  ASSERT_EQ(summary.records.size(), 2);
  EXPECT_NEAR(summary.records[0].amounts.energy.value(), 800, 1);
  EXPECT_EQ(summary.records[0].metric, 0.5);
  EXPECT_NEAR(summary.records[1].amounts.energy.value(), 1000, 1);
  EXPECT_THAT(summary.missing, IsEmpty());
}

TEST_F(TrainingLoopTest, LowerCanBeBetter) {
  TrainingLoop loop(bench_.monitor, {.target_metric = 0.3, .higher_is_better = false});
  double loss = 1.0;
  for ([[maybe_unused]] const int epoch : loop.Epochs()) loop.ReportMetric(loss /= 2);
  EXPECT_EQ(loop.Summary().epochs, 2);
  EXPECT_EQ(loop.Summary().best_metric, 0.25);
}

TEST_F(TrainingLoopTest, ItStopsWithinAnEpochThatBecomesTooExpensive) {
  TrainingLoop loop(bench_.monitor, {.cost_bound = 1100_J, .eta = 1});
  int steps = 0;
  bool evaluated = false;
  for ([[maybe_unused]] const int epoch : loop.Epochs()) {
    steps += Train(loop, std::views::iota(0));
    evaluated = true;
    steps += Train(loop, batches_);  // The bound is exceeded, so no step follows.
  }
  EXPECT_EQ(steps, 6);  // 200 J each.
  EXPECT_TRUE(evaluated);
  EXPECT_EQ(loop.Summary().reason, StopReason::kCostBound);
}

TEST_F(TrainingLoopTest, TheCostOfTheEvaluationCountsToo) {
  TrainingLoop loop(bench_.monitor, {.cost_bound = 1000_J, .eta = 1});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) {
    Train(loop, batches_);
    bench_.clock.Advance(3s);
  }
  EXPECT_EQ(loop.Summary().epochs, 1);
  EXPECT_EQ(loop.Summary().reason, StopReason::kCostBound);
}

TEST_F(TrainingLoopTest, ATargetReachedAboveTheBoundIsReached) {
  TrainingLoop loop(bench_.monitor, {.target_metric = 0.5, .cost_bound = 1_J, .eta = 1});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) {
    Train(loop, batches_);
    loop.ReportMetric(0.7);
  }
  EXPECT_EQ(loop.Summary().reason, StopReason::kTargetReached);
}

TEST_F(TrainingLoopTest, WithoutMaxPowerTheCostIsUnknownUnlessOnlyEnergyCounts) {
  for (const double eta : {0.5, 1.0}) {
    TrainingLoop loop(bench_.monitor, {.max_epochs = 2, .cost_bound = 1_J, .eta = eta});
    for ([[maybe_unused]] const int epoch : loop.Epochs()) Train(loop, batches_);
    EXPECT_EQ(loop.Summary().amounts.cost.has_value(), eta == 1.0);
    EXPECT_EQ(loop.Summary().reason, eta == 1.0 ? StopReason::kCostBound : StopReason::kMaxEpochs);
  }
}

TEST_F(TrainingLoopTest, AMetricThatIsNotANumberReachesNothing) {
  for (const bool higher : {true, false}) {
    TrainingLoop loop(bench_.monitor,
                      {.max_epochs = 2, .target_metric = 0, .higher_is_better = higher});
    for ([[maybe_unused]] const int epoch : loop.Epochs()) loop.ReportMetric(std::nan(""));
    const TrainingSummary summary = loop.Summary();
    EXPECT_EQ(summary.reason, StopReason::kMaxEpochs);
    EXPECT_FALSE(summary.best_metric);
    EXPECT_TRUE(summary.records[0].metric && std::isnan(*summary.records[0].metric));
  }
}

TEST_F(TrainingLoopTest, TheLastMetricOfAnEpochCountsAndNoneIsNone) {
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.max_epochs = 2, .target_metric = 0.8, .callbacks = {&diary}});
  for (const int epoch : loop.Epochs()) {
    if (epoch == 1) continue;
    loop.ReportMetric(0.9);
    loop.ReportMetric(0.7);
  }
  EXPECT_THAT(diary.lines,
              ElementsAre("train", "epoch0", "/epoch0", "good", "epoch1", "/epoch1", "/train"));
  const TrainingSummary summary = loop.Summary();
  EXPECT_EQ(summary.best_metric, 0.7);
  EXPECT_FALSE(summary.records[1].metric);
}

TEST_F(TrainingLoopTest, ABreakOutOfTheBatchesEndsTheStepAndTheEpochsTraining) {
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.max_epochs = 1, .callbacks = {&diary}});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) {
    for ([[maybe_unused]] const int batch : loop.Batches(batches_)) break;
    diary.lines.emplace_back("evaluation");
  }
  EXPECT_THAT(diary.lines,
              ElementsAre("train", "epoch0", "step", "/step", "/epoch0", "evaluation", "/train"));
}

TEST_F(TrainingLoopTest, AfterABreakTheNextEpochsFollow) {
  TrainingLoop loop(bench_.monitor, {.max_epochs = 3});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) break;
  EXPECT_EQ(loop.Summary().reason, StopReason::kStoppedByUser);
  std::vector<int> epochs;
  for (const int epoch : loop.Epochs()) epochs.push_back(epoch);
  EXPECT_THAT(epochs, ElementsAre(1, 2));
  EXPECT_EQ(loop.Summary().reason, StopReason::kMaxEpochs);
  for ([[maybe_unused]] const int epoch : loop.Epochs()) ADD_FAILURE() << "there are only three";
}

TEST_F(TrainingLoopTest, AnExceptionEndsWhatIsOpenAndPasses) {
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.callbacks = {&diary}});
  const auto train = [&] {
    for ([[maybe_unused]] const int epoch : loop.Epochs())
      for ([[maybe_unused]] const int batch : loop.Batches(batches_))
        throw std::runtime_error("out of memory");
  };
  EXPECT_THROW(train(), std::runtime_error);
  EXPECT_THAT(diary.lines, ElementsAre("train", "epoch0", "step", "/step", "/epoch0", "/train"));
  EXPECT_EQ(loop.Summary().reason, StopReason::kException);
  EXPECT_TRUE(bench_.monitor.BeginWindow("epoch").ok());
}

TEST_F(TrainingLoopTest, StopEndsTheEpochAfterTheBatch) {
  TrainingLoop loop(bench_.monitor);
  int steps = 0;
  for ([[maybe_unused]] const int epoch : loop.Epochs())
    for ([[maybe_unused]] const int batch : loop.Batches(batches_))
      if (++steps == 2) loop.Stop();
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(loop.Summary().reason, StopReason::kStoppedByUser);
  EXPECT_EQ(loop.Summary().amounts.steps, 2);
}

TEST_F(TrainingLoopTest, AnythingThatAForTakesIsASource) {
  TrainingLoop loop(bench_.monitor, {.max_epochs = 1});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) {
    const int array[] = {1, 2};
    EXPECT_EQ(Train(loop, array), 2);
    std::istringstream words("a b c");
    EXPECT_EQ(Train(loop, std::views::istream<std::string>(words)), 3);
    std::vector<std::unique_ptr<int>> owners(4);
    EXPECT_EQ(Train(loop, std::move(owners)), 4);
    EXPECT_EQ(Train(loop, std::vector<int>()), 0);
    std::vector<int> writable = {1, 1};
    for (int& batch : loop.Batches(writable)) batch = 7;
    EXPECT_THAT(writable, ElementsAre(7, 7));
  }
  EXPECT_EQ(loop.Summary().amounts.steps, 11);
}

// A source that is no std::ranges::range: its iterator has neither a default constructor nor a
// postfix increment.
struct BareSource {
  struct Iterator {
    explicit Iterator(int at) : value(at) {}
    int value;
    int operator*() const { return value; }
    void operator++() { ++value; }
    bool operator!=(const Iterator& other) const { return value != other.value; }
  };
  Iterator begin() { return Iterator(0); }
  Iterator end() { return Iterator(5); }
};

TEST_F(TrainingLoopTest, ASourceNeedsNoMoreThanAForNeeds) {
  TrainingLoop loop(bench_.monitor, {.max_epochs = 1});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) EXPECT_EQ(Train(loop, BareSource()), 5);
}

TEST_F(TrainingLoopTest, OutsideAnEpochBatchesAreJustBatches) {
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.cost_bound = 1_J, .eta = 1, .callbacks = {&diary}});
  EXPECT_EQ(Train(loop, batches_), 3);
  EXPECT_THAT(diary.lines, IsEmpty());
}

TEST_F(TrainingLoopTest, ACallbackMayStopTheTrainingWhenItSeesTheMetric) {
  struct Stopper final : TrainingCallback {
    void OnEvaluate(double) override { loop->Stop(); }
    TrainingLoop* loop = nullptr;
  } stopper;
  TrainingLoop loop(bench_.monitor, {.max_epochs = 5, .callbacks = {&stopper}});
  stopper.loop = &loop;
  for ([[maybe_unused]] const int epoch : loop.Epochs()) {
    Train(loop, batches_);
    loop.ReportMetric(0.5);
  }
  EXPECT_EQ(loop.Summary().epochs, 1);
  EXPECT_EQ(loop.Summary().reason, StopReason::kStoppedByUser);
}

TEST_F(TrainingLoopTest, ACostWithoutItsEnergyIsNotKnown) {
  ASSERT_TRUE(bench_.monitor.BeginWindow("epoch").ok());  // The loop would call its own so.
  TrainingLoop loop(bench_.monitor, {.max_epochs = 1, .max_power = 300_W});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) Train(loop, batches_);
  EXPECT_EQ(loop.Summary().amounts.cost, std::nullopt);
  EXPECT_EQ(loop.Summary().missing.size(), 1u);
}

TEST_F(TrainingLoopTest, NumbersThatMeanNothingAreNotUsed) {
  TrainingLoop loop(bench_.monitor, {.max_epochs = 1,
                                     .target_metric = std::nan(""),
                                     .cost_bound = Joules(std::nan("")),
                                     .max_power = Watts(-100)});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) Train(loop, batches_);
  EXPECT_EQ(loop.Summary().amounts.cost, std::nullopt);
  EXPECT_EQ(loop.Summary().reason, StopReason::kMaxEpochs);
}

class Thrower final : public TrainingCallback {
 public:
  void OnStepBegin() override {
    ++steps;
    throw std::runtime_error("no such file");
  }
  void OnStepEnd() override { throw 7; }
  void OnTrainEnd() override { ended = true; }

  int steps = 0;
  bool ended = false;
};

TEST_F(TrainingLoopTest, ACallbackThatThrowsStopsNobody) {
  Thrower thrower;
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.max_epochs = 1, .callbacks = {&thrower, nullptr, &diary}});
  ::testing::internal::CaptureStderr();
  for ([[maybe_unused]] const int epoch : loop.Epochs()) EXPECT_EQ(Train(loop, batches_), 3);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(thrower.steps, 1);
  EXPECT_TRUE(thrower.ended);
  EXPECT_EQ(diary.lines.size(), 4 + 2 * 3);
  EXPECT_THAT(said, ::testing::HasSubstr("training callback 0 failed at the begin of a step"));
  EXPECT_THAT(said, ::testing::HasSubstr("no such file"));
}

TEST_F(TrainingLoopTest, NoEpochsAreNoTraining) {
  Diary diary;
  TrainingLoop loop(bench_.monitor, {.max_epochs = 0, .callbacks = {&diary}});
  for ([[maybe_unused]] const int epoch : loop.Epochs()) ADD_FAILURE();
  EXPECT_THAT(diary.lines, IsEmpty());
  EXPECT_EQ(loop.Summary().reason, StopReason::kMaxEpochs);
}

TEST_F(TrainingLoopTest, ADeviceThatCannotBeReadIsMissingAndStopsNothing) {
  TrainingLoop loop(bench_.monitor, {.max_epochs = 1});
  ASSERT_TRUE(bench_.monitor.BeginWindow("epoch").ok());  // Another window takes the name.
  for ([[maybe_unused]] const int epoch : loop.Epochs()) Train(loop, batches_);
  const TrainingSummary summary = loop.Summary();
  EXPECT_THAT(summary.missing, ElementsAre("gpu:0"));
  EXPECT_DOUBLE_EQ(summary.amounts.time.count(), 3);
}

// Tests with several ranks, each a thread with its own device and clock.

using zeus::testing::Group;
using zeus::testing::GroupMember;

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

}  // namespace training_loop_test
}  // namespace zeus
