#include "zeus/optimizer/pipeline/plan.h"

#include <gtest/gtest.h>

#include <string>

#include "zeus/base/json.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::pipeline {
namespace plan_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

PipelinePlan TwoStagePlan() {
  PipelinePlan plan{.deadline = 3s,
                    .time = 2900ms,
                    .energy = 6000.25_J,
                    .waits_until = 3500ms,
                    .bound = 5990_J,
                    .clock_changes = 2};
  plan.stages = {{{"forward", 0, 0, 1410_MHz, 0s, 100ms, 30_J},
                  {"backward", 0, 1, 1110_MHz, 100ms, 200ms, 50_J}},
                 {{"optimizer_step", 0, 0, 0_MHz, 300ms, 10ms, 1_J}}};
  return plan;
}

Json TwoStageProfile() {
  return Json::parse(R"({"stages": 2, "blocking_power_watts": 83.64, "instructions": [
    {"stage": 0, "instruction": "forward", "points": [
      {"clock_mhz": 1410, "time_seconds": 0.1, "energy_joules": 30},
      {"clock_mhz": 1110, "time_seconds": 0.12, "energy_joules": 25}]},
    {"stage": 1, "instruction": "forward", "points": [
      {"clock_mhz": 1410, "time_seconds": 0.1, "energy_joules": 31}]}]})");
}

std::string PlanProblem(const Json& json) {
  const auto plan = PlanFromJson(json);
  return plan.ok() ? "accepted" : plan.error().message;
}

std::string ProfileProblem(const Json& json) {
  const auto profile = ProfileFromJson(json);
  return profile.ok() ? "accepted" : profile.error().message;
}

TEST(PlanJsonTest, APlanComesBackAsItWas) {
  const Json written = ToJson(TwoStagePlan());
  const auto read = PlanFromJson(written);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), written);
  EXPECT_EQ(read.value().stages[0][1].clock, 1110_MHz);
  EXPECT_EQ(read.value().stages[0][1].chunk, 1);
  EXPECT_EQ(read.value().waits_until, 3500ms);
}

TEST(PlanJsonTest, NamesCarryTheirUnits) {
  const Json written = ToJson(TwoStagePlan());
  EXPECT_EQ(written["time_seconds"], 2.9);
  EXPECT_EQ(written["energy_joules"], 6000.25);
  EXPECT_EQ(written["stages"][0][0]["clock_mhz"], 1410);
}

TEST(PlanJsonTest, WhatIsWrongInAPlanIsNamed) {
  Json json = ToJson(TwoStagePlan());
  json["stages"][0][1]["clock_mhz"] = "fast";
  EXPECT_EQ(PlanProblem(json), "stages[0]: instructions[1]: clock_mhz: must be a number");
  json = ToJson(TwoStagePlan());
  json["energy_joules"] = -1;
  EXPECT_EQ(PlanProblem(json), "energy_joules: must not be negative");
  json = ToJson(TwoStagePlan());
  json.erase("time_seconds");
  EXPECT_EQ(PlanProblem(json), "time_seconds: a plan needs it");
  json = ToJson(TwoStagePlan());
  json["stages"] = {1, 2};
  EXPECT_EQ(PlanProblem(json), "stages[0]: stages: must be a list of lists");
  EXPECT_EQ(PlanProblem(Json(3)), "a plan must be a JSON object");
}

TEST(PlanJsonTest, APlanThatIsTooLargeIsRefusedBeforeItIsRead) {
  Json json = ToJson(TwoStagePlan());
  json["stages"] = Json::array({Json(Json::array_t(kMostInstructions, Json(0)))});
  EXPECT_NE(PlanProblem(json).find("too many"), std::string::npos) << PlanProblem(json);
}

TEST(PlanJsonTest, AProfileComesBackAsItWas) {
  const auto read = ProfileFromJson(TwoStageProfile());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().stages, 2);
  EXPECT_EQ(read.value().blocking_power, 83.64_W);
  ASSERT_EQ(read.value().instructions.size(), 2U);
  EXPECT_EQ(read.value().instructions[0].points[1].clock, 1110_MHz);
  EXPECT_EQ(ToJson(read.value()), TwoStageProfile());
}

TEST(PlanJsonTest, WhatIsWrongInAProfileIsNamed) {
  Json json = TwoStageProfile();
  json["instructions"][0]["points"][1]["energy_joules"] = -25;
  EXPECT_EQ(ProfileProblem(json),
            "instructions[0]: points[1]: energy_joules: must not be negative");
  json = TwoStageProfile();
  json["instructions"][1].erase("points");
  EXPECT_EQ(ProfileProblem(json), "instructions[1]: points: must be a list");
  json = TwoStageProfile();
  json["instructions"][0]["points"][1]["time_seconds"] = 0;
  EXPECT_NE(ProfileProblem(json), "accepted") << "a computation that takes no time";
  EXPECT_EQ(ProfileProblem(Json("text")), "a profile must be a JSON object");
}

std::vector<PlannedInstruction> Plan() {
  return {{.instruction = "forward", .clock = 1400_MHz, .time = Seconds(1)},
          {.instruction = "p2p", .clock = Hertz(0), .time = Seconds(0.5)},
          {.instruction = "backward", .clock = 900_MHz, .time = Seconds(2)}};
}

TEST(StageClocksTest, GivesTheClockOfEachInstructionInEveryIteration) {
  StageClocks clocks(Plan());
  for (int iteration = 0; iteration < 3; ++iteration) {
    EXPECT_EQ(clocks.Begin("forward").value(), 1400_MHz);
    EXPECT_EQ(clocks.Next(), Hertz(0));
    EXPECT_EQ(clocks.Begin("p2p").value(), Hertz(0));
    EXPECT_EQ(clocks.Next(), 900_MHz);
    EXPECT_EQ(clocks.Begin("backward").value(), 900_MHz);
    EXPECT_EQ(clocks.Next(), 1400_MHz);  // The first clock of the next iteration.
    EXPECT_EQ(clocks.planned_time(), Seconds(3.5));
    EXPECT_TRUE(clocks.EndIteration().ok());
  }
}

TEST(StageClocksTest, AnotherInstructionThanPlannedIsNamed) {
  StageClocks clocks(Plan());
  const auto begun = clocks.Begin("backward");
  ASSERT_FALSE(begun.ok());
  EXPECT_NE(begun.error().message.find("\"backward\""), std::string::npos);
  EXPECT_NE(begun.error().message.find("\"forward\""), std::string::npos);
}

TEST(StageClocksTest, TooManyAndTooFewInstructionsAreErrors) {
  StageClocks clocks(Plan());
  EXPECT_TRUE(clocks.Begin("forward").ok());
  EXPECT_FALSE(clocks.EndIteration().ok());
  // It starts again at the first one.
  for (const char* name : {"forward", "p2p", "backward"}) EXPECT_TRUE(clocks.Begin(name).ok());
  EXPECT_FALSE(clocks.Begin("forward").ok());
}

}  // namespace plan_test
}  // namespace zeus::pipeline
