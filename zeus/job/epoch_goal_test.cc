#include "zeus/job/epoch_goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"

namespace zeus {
namespace epoch_goal_test {

using ::testing::HasSubstr;

TEST(EpochGoalTest, ARunReachesItAtItsLastEpoch) {
  JobSpec spec{.target_metric = 0.9, .higher_is_better = false};
  ASSERT_TRUE(SetEpochGoal(spec, 12).ok());
  EXPECT_TRUE(HasEpochGoal(spec));
  EXPECT_EQ(spec.max_epochs, 12);
  EXPECT_FALSE(ReachesTarget(spec, 11));
  EXPECT_TRUE(ReachesTarget(spec, 12));
}

TEST(EpochGoalTest, OtherJobsHaveNone) {
  EXPECT_FALSE(HasEpochGoal(JobSpec{}));
  JobSpec with_a_metric{.target_metric = 0.9, .labels = {{"goal", "epochs"}}};
  EXPECT_FALSE(HasEpochGoal(with_a_metric));
}

TEST(EpochGoalTest, ALabelOfTheUserIsNotOverwritten) {
  JobSpec spec{.labels = {{"goal", "paper"}}};
  const Status set = SetEpochGoal(spec, 3);
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message, HasSubstr("goal=paper"));
}

TEST(EpochGoalTest, ItSurvivesJson) {
  JobSpec spec{.id = "j", .batch_sizes = {8}, .default_batch_size = 8, .max_power = Watts(100)};
  spec.gpu_model = "V100";
  ASSERT_TRUE(SetEpochGoal(spec, 3).ok());
  const auto read = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(HasEpochGoal(read.value()));
}

}  // namespace epoch_goal_test
}  // namespace zeus
