#include "apps/zeus/train/slurm_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zeus::cli {
namespace slurm_launch_test {

using ::testing::ElementsAre;

TEST(TaskWordsTest, KeepWhatTheTrainingIsAndDropWhatTheLaunchIs) {
  const std::vector<std::string> words = {
      "/opt/zeus",       "train",  "--job",           "mnist", "--slurm", "--recurrences=40",
      "--slurm-options", "-p gpu", "--json",          "out",   "--eta",   "0.5",
      "--at-once",       "3",      "--slurm-no-wait", "--",    "prog",    "--slurm"};
  EXPECT_THAT(TaskWords(words, 2, {"--recurrences", "1"}),
              ElementsAre("/opt/zeus", "train", "--job", "mnist", "--eta", "0.5", "--recurrences",
                          "1", "--", "prog", "--slurm"));
}

TEST(TaskWordsTest, ACommandWithoutDashesGetsThem) {
  EXPECT_THAT(TaskWords({"zeus", "train", "--slurm", "prog", "--json", "x"}, 3, {}),
              ElementsAre("zeus", "train", "--", "prog", "--json", "x"));
}

}  // namespace slurm_launch_test
}  // namespace zeus::cli
