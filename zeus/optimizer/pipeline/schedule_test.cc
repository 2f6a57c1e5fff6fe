#include "zeus/optimizer/pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

namespace zeus::pipeline {
namespace schedule_test {

using ::testing::HasSubstr;

std::string Made(std::string_view name, const ScheduleShape& shape) {
  const auto schedule = MakeSchedule(name, shape);
  return schedule.ok() ? ToText(schedule.value()) : schedule.error().message;
}

TEST(ScheduleTest, OneForwardOneBackwardWarmsUpByThePlaceOfTheStage) {
  EXPECT_EQ(Made("1f1b", {.stages = 3, .microbatches = 4}),
            "F0 F1 F2 B0 F3 B1 B2 B3\n"
            "F0 F1 B0 F2 B1 F3 B2 B3\n"
            "F0 B0 F1 B1 F2 B2 F3 B3\n");
}

TEST(ScheduleTest, HandlesFewerMicrobatchesThanStages) {
  EXPECT_EQ(Made("1f1b", {.stages = 4, .microbatches = 2}),
            "F0 F1 B0 B1\n"
            "F0 F1 B0 B1\n"
            "F0 F1 B0 B1\n"
            "F0 B0 F1 B1\n");
}

TEST(ScheduleTest, GPipeDoesAllForwardsFirst) {
  EXPECT_EQ(Made("gpipe", {.stages = 2, .microbatches = 3}),
            "F0 F1 F2 B0 B1 B2\n"
            "F0 F1 F2 B0 B1 B2\n");
}

TEST(ScheduleTest, EarlyRecomputeFillsTheBubblesOfTheCoolDown) {
  EXPECT_EQ(Made("early_recompute", {.stages = 3, .microbatches = 4}),
            "F0 F1 F2 FB0 F3 FB1 R2 B2 R3 B3\n"
            "F0 F1 FB0 F2 FB1 F3 FB2 R3 B3\n"
            "F0 FB0 F1 FB1 F2 FB2 F3 FB3\n");
}

TEST(ScheduleTest, InterleavedIssuesGroupsOfMicrobatchesChunkByChunk) {
  EXPECT_EQ(Made("interleaved", {.stages = 2, .microbatches = 4, .chunks = 2}),
            "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3\n"
            "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3\n");
}

TEST(ScheduleTest, EverySchedulePassesEachMicrobatchOnceInEachDirection) {
  for (const char* const name : {"1f1b", "gpipe", "interleaved", "early_recompute"}) {
    const int chunks = std::string_view(name) == "interleaved" ? 3 : 1;
    const auto schedule = MakeSchedule(name, {.stages = 4, .microbatches = 8, .chunks = chunks});
    ASSERT_TRUE(schedule.ok());
    for (const auto& stage : schedule.value().stages) {
      std::map<std::tuple<bool, int, int>, int> seen;
      for (const Instruction& instruction : stage)
        if (instruction.name != kRecomputation)
          ++seen[{instruction.name == kForward, instruction.microbatch, instruction.chunk}];
      EXPECT_EQ(seen.size(), std::size_t(2 * 8 * chunks)) << name;
      for (const auto& [what, times] : seen) EXPECT_EQ(times, 1) << name;
    }
  }
}

TEST(ScheduleTest, RefusesShapesThatDoNotExist) {
  EXPECT_THAT(Made("1f1b", {.stages = 4, .microbatches = 0}), HasSubstr("microbatches: 0"));
  EXPECT_THAT(Made("1f1b", {.stages = 0, .microbatches = 4}), HasSubstr("stages: 0"));
  EXPECT_THAT(Made("1f1b", {.stages = 2, .microbatches = 4, .chunks = 2}), HasSubstr("chunks"));
  EXPECT_THAT(Made("interleaved", {.stages = 4, .microbatches = 6, .chunks = 2}),
              HasSubstr("not a multiple"));
  EXPECT_THAT(Made("zigzag", {.stages = 4, .microbatches = 6}), HasSubstr("\"zigzag\""));
  EXPECT_THAT(Made("1f1b", {.stages = 1024, .microbatches = 1 << 20}), HasSubstr("131072"));
  EXPECT_THAT(Made("1f1b", {.stages = 1 << 20, .microbatches = 1 << 20}), HasSubstr("131072"));
}

TEST(ScheduleTest, ReadsAListOfAUser) {
  const auto schedule = ParseSchedule(
      "# two stages\n"
      "F0, F1\tB0 B1 optimizer_step\n"
      "F0 B0 F1 FB1 wait:1\n");
  ASSERT_TRUE(schedule.ok()) << schedule.error().message;
  EXPECT_EQ(schedule.value().microbatches, 2);
  EXPECT_EQ(schedule.value().stages[0][4], (Instruction{"optimizer_step", 0, 0}));
  EXPECT_EQ(schedule.value().stages[1][3], (Instruction{"forward_backward", 1, 0}));
  EXPECT_EQ(schedule.value().stages[1][4], (Instruction{"wait", 1, 0}));
}

TEST(ScheduleTest, ReadsWhatItWrites) {
  const auto schedule = MakeSchedule("interleaved", {.stages = 2, .microbatches = 4, .chunks = 2});
  const auto again = ParseSchedule(ToText(schedule.value()));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().stages, schedule.value().stages);
  EXPECT_EQ(again.value().chunks, 2);
}

TEST(ScheduleTest, NamesTheWordThatItCannotRead) {
  const auto why = [](std::string_view text) {
    const auto schedule = ParseSchedule(text);
    return schedule.ok() ? std::string("it was accepted") : schedule.error().message;
  };
  EXPECT_THAT(why(""), HasSubstr("empty"));
  EXPECT_THAT(why("F0\nG1"), HasSubstr("line 2: \"G1\""));
  EXPECT_THAT(why("F0\n, ,"), HasSubstr("line 2 has commas and no instruction"));
  EXPECT_THAT(why("F-1"), HasSubstr("\"F-1\""));
  EXPECT_THAT(why("F1."), HasSubstr("\"F1.\""));
  EXPECT_THAT(why("F99999999"), HasSubstr("99999999"));
  EXPECT_THAT(why("name:"), HasSubstr("lacks its microbatch"));
  EXPECT_THAT(why(":3"), HasSubstr("lacks"));
}

}  // namespace schedule_test
}  // namespace zeus::pipeline
