#include "zeus/optimizer/pipeline/stage_clocks.h"

#include <gtest/gtest.h>

#include <string>

namespace zeus::pipeline {
namespace stage_clocks_test {

using namespace zeus::literals;

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

}  // namespace stage_clocks_test
}  // namespace zeus::pipeline
