#include "zeus/wire/plans.h"

#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/plan.h"

namespace zeus::wire {
namespace plans_test {

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

}  // namespace plans_test
}  // namespace zeus::wire
