#include "zeus/session/slurm_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zeus {
namespace slurm_queue_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SplitShellWordsTest, SplitsAsAShellDoes) {
  EXPECT_THAT(SplitShellWords("  -p gpu\t--comment='a b' \"c d\"e f\\ g '' ").value(),
              ElementsAre("-p", "gpu", "--comment=a b", "c de", "f g", ""));
  EXPECT_FALSE(SplitShellWords("--comment='a").ok());
}

// Answers in the order in which it is asked, and keeps what it was asked.
struct Slurm {
  std::vector<ProgramOutput> answers;
  std::vector<std::vector<std::string>> commands{};
  std::vector<std::string> inputs{};

  SlurmQueue Queue() {
    return SlurmQueue([this](const std::vector<std::string>& command, const std::string& input) {
      commands.push_back(command);
      inputs.push_back(input);
      return Result<ProgramOutput>(answers.at(commands.size() - 1));
    });
  }
};

SlurmSubmission Forty() {
  return {.name = "zeus-mnist",
          .command = {"/opt/zeus", "train", "it's"},
          .tasks = 40,
          .at_once = 3,
          .options = {"--partition=gpu"}};
}

TEST(SlurmQueueTest, AnArrayHasItsLimitAndRunsTheCommandInsteadOfTheScript) {
  Slurm slurm{{{.output = "12;zeus\n"}}};
  EXPECT_THAT(slurm.Queue().Submit(Forty()).value(), ElementsAre("12"));
  EXPECT_THAT(slurm.commands[0], Contains("--array=1-40%3"));
  EXPECT_THAT(slurm.commands[0], Contains("--requeue"));
  EXPECT_EQ(slurm.commands[0].back(), "--partition=gpu");
  EXPECT_EQ(slurm.inputs[0], "#!/bin/sh\nexec '/opt/zeus' 'train' 'it'\\''s'\n");
}

TEST(SlurmQueueTest, RetriesWaitForAFailureAndKnowTheirFirstArray) {
  Slurm slurm{{{.output = "12\n"}, {.output = "13\n"}, {.output = "14\n"}}};
  SlurmSubmission submission = Forty();
  submission.retries = 2;
  EXPECT_THAT(slurm.Queue().Submit(submission).value(), ElementsAre("12", "13", "14"));
  EXPECT_THAT(slurm.commands[0], Not(Contains(HasSubstr("--dependency"))));
  EXPECT_THAT(slurm.commands[2], Contains("--dependency=afternotok:13"));
  EXPECT_THAT(slurm.inputs[2], HasSubstr("ZEUS_SLURM_FIRST=12 ZEUS_SLURM_RETRY=2"));
}

TEST(SlurmQueueTest, WhatSbatchSaysIsTold) {
  Slurm slurm{{{.exit_code = 1, .errors = "sbatch: error: invalid partition specified: gpu\n"}}};
  const auto refused = slurm.Queue().Submit(Forty());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("invalid partition"));
}

TEST(SlurmQueueTest, StatesAreReadAndForgottenJobsAreNoError) {
  Slurm slurm{{{.output = "12_1 RUNNING\n12_2 PENDING\n"},
               {.exit_code = 1, .errors = "slurm_load_jobs error: Invalid job id specified"},
               {.exit_code = 1, .errors = "Unable to contact slurm controller"}}};
  SlurmQueue queue = slurm.Queue();
  const auto states = queue.States({"12", "13"});
  ASSERT_TRUE(states.ok());
  EXPECT_EQ(states.value().at("12_1"), "RUNNING");
  EXPECT_TRUE(IsUnderWay(states.value().at("12_2")));
  const auto away = queue.States({"12"});
  ASSERT_FALSE(away.ok());
  EXPECT_TRUE(away.error().retryable());
}

TEST(SlurmOutcomeTest, ATaskCountsByItsLatestArray) {
  const SlurmOutcome outcome = OutcomeOf({{"12_1", "COMPLETED"},
                                          {"12_2", "FAILED"},
                                          {"13_1", "COMPLETED"},
                                          {"13_2", "COMPLETED"},
                                          {"12_3", "FAILED"},
                                          {"13_3", "CANCELLED"}});
  EXPECT_EQ(outcome.completed, 2U);
  EXPECT_EQ(outcome.failed, 1U);
}

}  // namespace slurm_queue_test
}  // namespace zeus
