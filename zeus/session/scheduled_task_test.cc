#include "zeus/session/scheduled_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zeus {
namespace scheduled_task_test {

using ::testing::SizeIs;

Environment Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

std::map<std::string, std::string> Batch() {
  return {{"SLURM_CLUSTER_NAME", "zeus"}, {"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}};
}

TEST(ScheduledTaskTest, IsNamedAfterItsJobOrItsPlaceInAnArray) {
  EXPECT_FALSE(FindScheduledTask(Variables({})));
  EXPECT_EQ(FindScheduledTask(Variables(Batch()))->name, "slurm:zeus.12");
  auto array = Batch();
  array["SLURM_ARRAY_JOB_ID"] = "10";
  array["SLURM_ARRAY_TASK_ID"] = "3";
  EXPECT_EQ(FindScheduledTask(Variables(array))->name, "slurm:zeus.10_3");
  auto step = Batch();
  step["SLURM_STEP_NUM_TASKS"] = "2";
  step["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(FindScheduledTask(Variables(step))->name, "slurm:zeus.12.0.0");
}

TEST(ScheduledTaskTest, ARequeuedTaskAndARetriedOneAreLaterStartsOfTheSame) {
  auto array = Batch();
  array["SLURM_ARRAY_JOB_ID"] = "10";
  array["SLURM_ARRAY_TASK_ID"] = "3";
  array["SLURM_RESTART_COUNT"] = "2";
  const ScheduledTask requeued = *FindScheduledTask(Variables(array));
  EXPECT_EQ(requeued.start, 2);
  array["SLURM_ARRAY_JOB_ID"] = "50";
  array["SLURM_RESTART_COUNT"] = "nonsense";
  array["ZEUS_SLURM_FIRST"] = "10";
  array["ZEUS_SLURM_RETRY"] = "1";
  const ScheduledTask retried = *FindScheduledTask(Variables(array));
  EXPECT_EQ(retried.name, requeued.name);
  EXPECT_GT(retried.start, requeued.start);
}

TEST(TaskRequestTest, SurvivesItsText) {
  const TaskRequest request{
      .task = {.name = "slurm:zeus.10_3", .start = 2}, .call = 4, .recurrence = 7};
  const std::string text = ToText(request, "n1-77-1");
  const auto read = ParseTaskRequest(text, request.task.name);
  ASSERT_TRUE(read);
  EXPECT_EQ(ToText(*read, "n1-77-1"), text);
  EXPECT_FALSE(ParseTaskRequest(text, "slurm:zeus.10_"));
  EXPECT_FALSE(ParseTaskRequest(text, "slurm:zeus.1"));
  EXPECT_FALSE(ParseTaskRequest("slurm:zeus.10_3-s2-c-n7-x", request.task.name));
  EXPECT_FALSE(ParseTaskRequest("host-1-2-3", request.task.name));
}

constexpr const char* kTask = "slurm:zeus.10_3";

Trial Made(std::int64_t number, int start, int call, unsigned recurrence, TrialStatus status) {
  Trial trial;
  trial.number = number;
  trial.status = status;
  trial.recurrence = static_cast<std::int64_t>(100 + recurrence);
  trial.request_id =
      ToText({.task = {.name = kTask, .start = start}, .call = call, .recurrence = recurrence},
             "n1-" + std::to_string(number));
  return trial;
}

TEST(PastOfTaskTest, AFirstStartHasNone) {
  Trial stranger = Made(1, 0, 1, 1, TrialStatus::kReporting);
  stranger.request_id = "n1-5-6-1";
  const TaskPast past = PastOf({.name = kTask, .start = 0}, {stranger});
  EXPECT_EQ(past.call, 1);
  EXPECT_TRUE(past.latest.empty());
  EXPECT_TRUE(past.unfinished.empty());
}

TEST(PastOfTaskTest, ALaterStartFindsTheLatestTrialOfEachRecurrenceAndWhatNobodyEnds) {
  const TaskPast past =
      PastOf({.name = kTask, .start = 1},
             {Made(5, 0, 1, 1, TrialStatus::kStopped), Made(6, 0, 1, 1, TrialStatus::kConverged),
              Made(8, 0, 1, 2, TrialStatus::kReporting)});
  EXPECT_EQ(past.call, 1);
  EXPECT_EQ(past.latest.at(1).number, 6);
  EXPECT_EQ(past.latest.at(2).number, 8);
  ASSERT_THAT(past.unfinished, SizeIs(1));
  EXPECT_EQ(past.unfinished[0].number, 8);
}

TEST(PastOfTaskTest, SeveralCallsOfOneStartAreNotTakenForEachOther) {
  const std::vector<Trial> trials = {Made(1, 0, 1, 1, TrialStatus::kConverged)};
  const TaskPast second = PastOf({.name = kTask, .start = 0}, trials);
  EXPECT_EQ(second.call, 2);
  EXPECT_TRUE(second.latest.empty());
  const TaskPast again = PastOf(
      {.name = kTask, .start = 1},
      {trials[0], Made(2, 0, 2, 1, TrialStatus::kFailed), Made(3, 1, 1, 1, TrialStatus::kFailed)});
  EXPECT_EQ(again.call, 2);
  EXPECT_EQ(again.latest.at(1).number, 2);
}

}  // namespace scheduled_task_test
}  // namespace zeus
