// Placeholders in commands, and records of running trials.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/session/placeholders.h"
#include "zeus/session/train_session.h"

namespace zeus {
namespace trial_parts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PlaceholdersTest, OnlyKnownOnesAreReplaced) {
  const Placeholders placeholders{{"batch_size", "64"}, {"lr", "0.1"}};
  EXPECT_EQ(Substitute("--b={batch_size} {lr}{lr} {x} {{batch_size} } {", placeholders),
            "--b=64 0.10.1 {x} {64 } {");
}

TEST(PlaceholdersTest, LearningRatesFollowTheBatchSize) {
  EXPECT_DOUBLE_EQ(ScaledLearningRate(0.1, LearningRateScaling::kSquareRoot, 256, 64), 0.2);
  EXPECT_DOUBLE_EQ(ScaledLearningRate(0.1, LearningRateScaling::kLinear, 32, 64), 0.05);
  EXPECT_DOUBLE_EQ(ScaledLearningRate(0.1, LearningRateScaling::kNone, 256, 64), 0.1);
}

TEST(TrialRecordsTest, OnlyRunnersThatDiedLeaveOrphans) {
  const zeus::testing::TemporaryDirectory folder;
  const TrialRecords records(folder.path() / "trials");
  const RunningTrial alive{
      .where = "here", .job = "a", .request = "r1", .trial = 1, .runner = ThisProcess().value()};
  RunningTrial dead = alive;
  dead.request = "r2";
  dead.runner.start_ticks += 1;
  ASSERT_TRUE(records.Add(alive).ok());
  ASSERT_TRUE(records.Add(dead).ok());
  dead.trial = 2;
  ASSERT_TRUE(records.Add(dead).ok());
  const auto orphans = records.Orphans("here", "a");
  ASSERT_EQ(orphans.size(), 1U);
  EXPECT_EQ(orphans.front().request, "r2");
  EXPECT_THAT(records.Orphans("there", "a"), IsEmpty());
  EXPECT_THAT(records.Orphans("here", "b"), IsEmpty());
  records.Remove(dead);
  EXPECT_THAT(records.Orphans("here", "a"), IsEmpty());
}

TEST(TrialRecordsTest, RunnersOfOtherMachinesAreNotJudgedAndThoseOfAnEarlierBootAreDead) {
  const zeus::testing::TemporaryDirectory folder;
  const TrialRecords records(folder.path() / "trials");
  RunningTrial elsewhere{
      .where = "here", .job = "a", .request = "r1", .trial = 1, .runner = ThisProcess().value()};
  elsewhere.runner.start_ticks += 1;
  elsewhere.host = "elsewhere";
  RunningTrial earlier = elsewhere;
  earlier.request = "r2";
  earlier.host.clear();
  earlier.runner = ThisProcess().value();
  earlier.boot = "an earlier one";
  ASSERT_TRUE(records.Add(elsewhere).ok());
  ASSERT_TRUE(records.Add(earlier).ok());
  const auto orphans = records.Orphans("here", "a");
  ASSERT_EQ(orphans.size(), 1U);
  EXPECT_EQ(orphans.front().request, "r2");
}

}  // namespace trial_parts_test
}  // namespace zeus
