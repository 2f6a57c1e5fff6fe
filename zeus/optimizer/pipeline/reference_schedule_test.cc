#include "zeus/optimizer/pipeline/reference_schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::pipeline {
namespace reference_schedule_test {

using namespace zeus::literals;
using namespace std::chrono_literals;

std::string Problem(std::string_view text) {
  const auto ranks = ParseReferenceSchedule(text);
  return ranks.ok() ? "accepted" : ranks.error().message;
}

TEST(ReferenceScheduleTest, ListsOfTuplesAreRanks) {
  const auto ranks = ParseReferenceSchedule(R"(
[
[("forward", 1410), ('backward', 1110.0), ],
[("forward", 0)]
]
# Iteration cost change: 0.25
# Total cost: 5736.36
)");
  ASSERT_TRUE(ranks.ok()) << ranks.error().message;
  ASSERT_EQ(ranks.value().size(), 2U);
  EXPECT_EQ(ranks.value()[0], (RankClocks{{"forward", 1410_MHz}, {"backward", 1110_MHz}}));
  EXPECT_EQ(ranks.value()[1], (RankClocks{{"forward", 0_MHz}}));
}

TEST(ReferenceScheduleTest, ListsAndTuplesAreTheSame) {
  EXPECT_EQ(Problem("([['forward', 1410]],)"), "accepted");
  EXPECT_EQ(Problem("[]"), "accepted");
}

TEST(ReferenceScheduleTest, NothingIsEvaluated) {
  EXPECT_EQ(Problem("__import__('os').system('true')"),
            "line 1, column 1: \"_\" where the schedule needs a list of ranks");
  EXPECT_EQ(Problem("[[(\"forward\", 1400 + 10)]]"),
            "line 1, column 20: \"+\" where the schedule needs ')'");
  EXPECT_EQ(Problem("[[('forward', 1410)]]\nimport os"),
            "line 2, column 1: \"i\" where the schedule needs nothing but comments after the list");
}

TEST(ReferenceScheduleTest, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_EQ(Problem(""), "line 1, column 1: the end where the schedule needs a list of ranks");
  EXPECT_EQ(Problem("[\n  [('forward' 1410)]]"),
            "line 2, column 15: \"1\" where the schedule needs a comma and the clock in MHz");
  EXPECT_EQ(Problem("[[('forward', -1)]]"),
            "line 1, column 15: \"-\" where the schedule needs a clock in MHz, 0 to leave it as it "
            "is");
  EXPECT_EQ(Problem("[[(forward, 1410)]]"),
            "line 1, column 4: \"f\" where the schedule needs an instruction's name in quotation "
            "marks");
  EXPECT_EQ(Problem("[[('forward', 1410) ('backward', 1410)]]"),
            "line 1, column 21: \"(\" where the schedule needs a comma or ']'");
  EXPECT_NE(Problem("[[('for\\x77ard', 1410)]]"), "accepted");
  EXPECT_NE(Problem("[[('', 1410)]]"), "accepted");
  EXPECT_NE(Problem("[[('forward', 1e300)]]"), "accepted");
  EXPECT_NE(Problem("[[('forward"), "accepted");
}

TEST(ReferenceScheduleTest, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_NE(Problem(std::string(10'000'000, '[')), "accepted");
}

TEST(ReferenceScheduleTest, MoreThanTheMostInstructionsAreRefused) {
  std::string text = "[[";
  for (int i = 0; i <= kMostInstructions; ++i) text += "('f',1),";
  EXPECT_NE(Problem(text + "]]").find("at most 131072 instructions"), std::string::npos);
}

TEST(ReferenceScheduleTest, WhatIsWrittenCanBeReadBack) {
  PipelinePlan plan{.deadline = 3s, .time = 2900ms, .energy = 6000_J, .waits_until = 3s};
  plan.bound = 5990_J;
  plan.stages = {{{.instruction = "forward", .clock = 1410_MHz},
                  {.instruction = "backward", .clock = 1110_MHz}},
                 {{.instruction = "a\"b\n\\", .clock = 0_MHz}}};
  const std::string text = ToReferenceSchedule(plan);
  EXPECT_NE(text.find("(\"forward\", 1410), (\"backward\", 1110), "), std::string::npos) << text;
  EXPECT_NE(text.find("# Iteration time: 2.9 s, within 3 s"), std::string::npos) << text;
  const auto ranks = ParseReferenceSchedule(text);
  ASSERT_TRUE(ranks.ok()) << ranks.error().message;
  EXPECT_EQ(ranks.value()[0], (RankClocks{{"forward", 1410_MHz}, {"backward", 1110_MHz}}));
  EXPECT_EQ(ranks.value()[1], (RankClocks{{"a_b__", 0_MHz}}));
}

}  // namespace reference_schedule_test
}  // namespace zeus::pipeline
