#include "zeus/job/recurrences.h"

#include <gtest/gtest.h>

#include <chrono>

#include "zeus/job/testing/local_job_service_fixture.h"

namespace zeus {
namespace recurrences_test {

using namespace literals;
using namespace std::chrono_literals;

class RecurrencesTest : public LocalJobServiceTest {
 protected:
  Trial& Add(std::int64_t recurrence, int batch_size, TrialStatus status) {
    const auto number = static_cast<std::int64_t>(trials_.size()) + 1;
    trials_.push_back({.number = number,
                       .recurrence = recurrence,
                       .batch_size = batch_size,
                       .gpu_model = "V100",
                       .max_power = 250_W,
                       .status = status,
                       .started_at = WallTime(std::chrono::seconds(100 * number)),
                       .epochs = 3,
                       .time = 10s,
                       .energy = 100_J,
                       .cost = 100_J});
    if (IsFinal(status))
      trials_.back().ended_at = WallTime(std::chrono::seconds(100 * number + 10));
    return trials_.back();
  }

  std::vector<Trial> trials_;
};

TEST_F(RecurrencesTest, AllTriesOfARecurrenceAreSummedUp) {
  Add(0, 16, TrialStatus::kStopped);
  Add(0, 32, TrialStatus::kConverged);
  Add(1, 32, TrialStatus::kFailed);
  const auto recurrences = ByRecurrence(trials_);
  ASSERT_EQ(recurrences.size(), 2U);
  EXPECT_EQ(recurrences[0].tries, 2);
  EXPECT_EQ(recurrences[0].first_batch_size, 16);
  EXPECT_EQ(recurrences[0].batch_size, 32);
  EXPECT_TRUE(recurrences[0].converged);
  EXPECT_FALSE(recurrences[0].failed);
  EXPECT_EQ(recurrences[0].energy, 200_J);
  EXPECT_EQ(recurrences[0].started_at, WallTime(100s));
  EXPECT_EQ(recurrences[0].ended_at, WallTime(210s));
  EXPECT_TRUE(recurrences[1].failed);
  EXPECT_FALSE(recurrences[1].converged);
}

TEST_F(RecurrencesTest, ARecurrenceUnderWayHasNoEnd) {
  Add(0, 16, TrialStatus::kStopped);
  Add(0, 32, TrialStatus::kReporting);
  const auto recurrences = ByRecurrence(trials_);
  EXPECT_TRUE(recurrences[0].under_way);
  EXPECT_FALSE(recurrences[0].ended_at);
}

TEST_F(RecurrencesTest, PowerLimitsAreProfiledByTheFirstDisturbedRunWithABatchSize) {
  Add(0, 32, TrialStatus::kConverged).undisturbed = true;
  Add(1, 32, TrialStatus::kConverged).role = RunRole::kBaseline;
  Add(2, 32, TrialStatus::kConverged);
  Add(3, 32, TrialStatus::kConverged);
  Add(4, 16, TrialStatus::kConverged);
  Add(5, 16, TrialStatus::kConverged).gpu_model = "A40";
  std::vector<bool> profiling;
  for (const RecurrenceAmounts& recurrence : ByRecurrence(trials_))
    profiling.push_back(recurrence.profiling);
  EXPECT_EQ(profiling, (std::vector<bool>{false, false, true, false, true, true}));
}

TEST_F(RecurrencesTest, MeansOfABatchSizeChargeItsFailedRuns) {
  Add(0, 16, TrialStatus::kConverged);
  Add(1, 16, TrialStatus::kConverged).energy = 140_J;
  Add(2, 16, TrialStatus::kStopped).energy = 60_J;
  Add(3, 16, TrialStatus::kFailed);
  Add(4, 16, TrialStatus::kConverged).shared = true;
  const auto arms = MeasureArms(Spec(), trials_, "V100", 1.0);
  ASSERT_EQ(arms.size(), 4U);
  EXPECT_EQ(arms[0].runs, 0);
  EXPECT_EQ(arms[1].batch_size, 16);
  EXPECT_EQ(arms[1].runs, 3);
  EXPECT_EQ(arms[1].reached, 2);
  EXPECT_DOUBLE_EQ(arms[1].energy.mean, 150);
  EXPECT_DOUBLE_EQ(arms[1].time.mean, 15);
}

TEST_F(RecurrencesTest, CostsFollowEta) {
  Add(0, 16, TrialStatus::kConverged);
  EXPECT_DOUBLE_EQ(MeasureArms(Spec(), trials_, "V100", 0.0)[1].cost.mean, 250 * 10);
  EXPECT_DOUBLE_EQ(MeasureArms(Spec(), trials_, "V100", 0.5)[1].cost.mean, 50 + 1250);
}

}  // namespace recurrences_test
}  // namespace zeus
