#include "zeus/wire/answers.h"

#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/plan.h"
#include "zeus/wire/error.h"

namespace zeus::wire {
namespace answers_test {

using namespace std::chrono_literals;
using namespace zeus::literals;

Trial SomeTrial() {
  return {.job_id = "mnist",
          .number = 7,
          .recurrence = 3,
          .attempt = 1,
          .batch_size = 64,
          .role = RunRole::kConcurrent,
          .gpu_model = "V100",
          .max_power = 250_W,
          .status = TrialStatus::kStopped,
          .request_id = "r",
          .started_at = WallTime(1'700'000'000'123'456us),
          .lease = 900s,
          .lease_until = WallTime(1'700'000'900'123'456us),
          .ended_at = WallTime(1'700'000'500'000'001us),
          .epochs = 5,
          .time = 50s,
          .energy = 1234.5_J,
          .cost = 2000_J,
          .metric = 0.5,
          .epoch_cost = 400_J,
          .power_limit = 150_W,
          .reason = "budget",
          .why = "it costs least"};
}

Job SomeJob() {
  return {.spec = {.id = "mnist",
                   .batch_sizes = {32, 64},
                   .default_batch_size = 64,
                   .max_power = 250_W,
                   .gpu_model = "V100",
                   .labels = {{"team", "vision"}}},
          .seed = 18'446'744'073'709'551'615U,
          .created_at = WallTime(1'700'000'000'000'001us),
          .recurrences = 4,
          .trials = 7,
          .events = 30,
          .policy_state = {},
          .least_cost = 2000_J,
          .least_cost_batch_size = 64};
}

TEST(WireAnswersTest, ATrialComesBackAsItWas) {
  const auto read = TrialFromJson(ToJson(SomeTrial()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), ToJson(SomeTrial()));
  EXPECT_EQ(read.value().ended_at, SomeTrial().ended_at);
  EXPECT_EQ(read.value().role, RunRole::kConcurrent);
}

TEST(WireAnswersTest, TheNextChoiceComesWithItsReasonsUnlessTheServerIsOld) {
  JobArms arms{.gpu_model = "V100",
               .stage = "optimizing",
               .best_batch_size = 64,
               .next = Explanation{.choice = {.batch_size = 32, .role = RunRole::kExploring},
                                   .why = "It may be cheaper.",
                                   .outlook = "Still learning."}};
  const auto read = JobArmsFromJson(ToJson(arms));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(read.value().next);
  EXPECT_EQ(read.value().next->choice, arms.next->choice);
  EXPECT_EQ(read.value().next->why, arms.next->why);
  Json old = ToJson(arms);
  old.erase("next");
  EXPECT_FALSE(JobArmsFromJson(old).value().next);
}

TEST(WireAnswersTest, ATrialThatJustBeganKnowsLess) {
  Trial trial = SomeTrial();
  trial.ended_at.reset();
  trial.metric.reset();
  trial.epoch_cost.reset();
  trial.power_limit.reset();
  const auto read = TrialFromJson(ToJson(trial));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_FALSE(read.value().metric);
  EXPECT_EQ(ToJson(read.value()), ToJson(trial));
}

TEST(WireAnswersTest, AJobComesBackWithoutTheStateOfItsPolicy) {
  const Json json = ToJson(SomeJob(), JobProgress{.stage = "sampling", .best_batch_size = 64});
  EXPECT_EQ(json.at("stage"), "sampling");
  const auto read = JobFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().spec, SomeJob().spec);
  EXPECT_EQ(read.value().seed, SomeJob().seed);
  EXPECT_EQ(read.value().created_at, SomeJob().created_at);
  EXPECT_EQ(read.value().least_cost, 2000_J);
}

TEST(WireAnswersTest, ANewerServerMaySayMore) {
  Json json = ToJson(SomeTrial());
  json["carbon_grams"] = 5;
  EXPECT_TRUE(TrialFromJson(json).ok());
}

TEST(WireAnswersTest, AnAnswerThatIsNoneNamesTheField) {
  Json json = ToJson(SomeTrial());
  json["status"] = "sleeping";
  EXPECT_EQ(FieldOf(TrialFromJson(json).error()), "status");
  EXPECT_FALSE(TrialFromJson(Json()).ok());
  EXPECT_FALSE(StartedTrialFromJson(Json::object()).ok());
  EXPECT_FALSE(JobsFromJson(Json::object()).ok());
}

TEST(WireAnswersTest, StartedTrialsAndReportAnswersComeBackAsTheyWere) {
  const StartedTrial started{
      .trial = SomeTrial(), .max_epochs = 12, .unprofiled_batch_sizes = {32, 128}};
  const auto read = StartedTrialFromJson(ToJson(started));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), ToJson(started));

  const ReportAnswer answer{
      .stop = true, .converged = false, .retry = true, .message = "too dear", .trial = SomeTrial()};
  const auto answered = ReportAnswerFromJson(ToJson(answer));
  ASSERT_TRUE(answered.ok()) << answered.error().message;
  EXPECT_EQ(ToJson(answered.value()), ToJson(answer));
}

TEST(WireAnswersTest, ArmsComeBackAsTheyWere) {
  const JobArms arms{.gpu_model = "V100",
                     .stage = "sampling",
                     .best_batch_size = 64,
                     .arms = {{.batch_size = 32, .state = ArmState::kDropped, .runs = 1},
                              {.batch_size = 64,
                               .state = ArmState::kCandidate,
                               .runs = 4,
                               .converged = 3,
                               .epochs = 7.5,
                               .epoch_cost = 400_J,
                               .epoch_cost_profiled = true,
                               .cost = 3000_J,
                               .cost_sigma = 50_J}}};
  const auto read = JobArmsFromJson(ToJson(arms));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), ToJson(arms));
  EXPECT_EQ(read.value().arms[0].state, ArmState::kDropped);
}

TEST(WireAnswersTest, AnEventComesBackAsItWas) {
  const JobEvent event{.job_id = "mnist",
                       .sequence = 5,
                       .at = WallTime(1'700'000'000'123'456us),
                       .kind = EventKind::kTrialReported,
                       .trial = 7,
                       .detail = {{"epoch", 3}}};
  const auto read = JobEventFromJson(ToJson(event));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), ToJson(event));
  const auto page = EventsFromJson({{"events", Json::array({ToJson(event)})}, {"next", 5}});
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page.value().size(), 1u);
}

CurrentPlan APlan() {
  return {.id = "gpt",
          .version = 3,
          .pace = Seconds(3.4),
          .plan = {.deadline = Seconds(3.4),
                   .time = Seconds(3.3),
                   .energy = Joules(5000.5),
                   .waits_until = Seconds(3.4),
                   .bound = Joules(4990),
                   .clock_changes = 2,
                   .stages = {{{.instruction = "forward",
                                .microbatch = 1,
                                .clock = Hertz::FromMega(1410),
                                .start = Seconds(0.1),
                                .time = Seconds(0.2),
                                .energy = Joules(30)}}}},
          .baseline_time = Seconds(2.818),
          .baseline_energy = Joules(6212.8)};
}

TEST(PlansTest, ACurrentPlanTravelsWhole) {
  const auto there = CurrentPlanFromJson(ToJson(APlan()));
  ASSERT_TRUE(there.ok()) << there.error().message;
  EXPECT_EQ(there.value().id, "gpt");
  EXPECT_EQ(there.value().version, 3);
  EXPECT_EQ(there.value().pace, Seconds(3.4));
  EXPECT_EQ(there.value().baseline_time, Seconds(2.818));
  EXPECT_EQ(there.value().baseline_energy, Joules(6212.8));
  EXPECT_EQ(pipeline::ToJson(there.value().plan), pipeline::ToJson(APlan().plan));
}

TEST(PlansTest, APlanWithoutAStragglerHasNoPace) {
  CurrentPlan plan = APlan();
  plan.pace.reset();
  EXPECT_TRUE(ToJson(plan).at("pace_seconds").is_null());
  EXPECT_EQ(CurrentPlanFromJson(ToJson(plan)).value().pace, std::nullopt);
}

TEST(PlansTest, ANewerServerMaySayMore) {
  Json json = ToJson(APlan());
  json["colour"] = "green";
  EXPECT_TRUE(CurrentPlanFromJson(json).ok());
  json.erase("plan");
  EXPECT_FALSE(CurrentPlanFromJson(json).ok());
}

TEST(PlansTest, AFrontierTravelsWhole) {
  const PlanFrontier frontier{
      .fastest_time = Seconds(2.8),
      .baseline_time = Seconds(2.9),
      .baseline_energy = Joules(6000),
      .points = {{.ticks = 34, .time = Seconds(3.4), .energy = Joules(5000)},
                 {.ticks = 28, .time = Seconds(2.8), .energy = Joules(5900.25)}}};
  const auto there = PlanFrontierFromJson(ToJson(frontier));
  ASSERT_TRUE(there.ok()) << there.error().message;
  EXPECT_EQ(there.value().fastest_time, Seconds(2.8));
  EXPECT_EQ(there.value().baseline_time, Seconds(2.9));
  EXPECT_EQ(there.value().baseline_energy, Joules(6000));
  ASSERT_EQ(there.value().points.size(), 2U);
  EXPECT_EQ(there.value().points[1].ticks, 28);
  EXPECT_EQ(there.value().points[1].time, Seconds(2.8));
  EXPECT_EQ(there.value().points[1].energy, Joules(5900.25));
}

TEST(PlansTest, APaceIsANumberOrNullAndNothingElse) {
  EXPECT_EQ(PaceFromJson(PaceToJson(Seconds(3.4))).value().pace, Seconds(3.4));
  EXPECT_EQ(PaceFromJson(PaceToJson(std::nullopt)).value().pace, std::nullopt);
  const PaceReport report = PaceFromJson({{"pace_seconds", 3.4}, {"rank", 5}}).value();
  EXPECT_EQ(report.pace, Seconds(3.4));
  EXPECT_EQ(report.rank, 5);
  for (const Json& wrong :
       {Json::object(), Json{{"pace_seconds", "3.4"}}, Json{{"pace_seconds", 0}},
        Json{{"pace_seconds", -1}}, Json{{"pace_seconds", 1}, {"pase", 2}},
        Json{{"pace_seconds", 1}, {"rank", "first"}}})
    EXPECT_FALSE(PaceFromJson(wrong).ok()) << wrong;
}

}  // namespace answers_test
}  // namespace zeus::wire
