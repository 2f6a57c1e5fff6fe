#include "zeus/wire/answers.h"

#include <gtest/gtest.h>

#include "zeus/base/json.h"
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
          .reason = "budget"};
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

}  // namespace answers_test
}  // namespace zeus::wire
