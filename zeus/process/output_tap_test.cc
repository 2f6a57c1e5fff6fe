#include "zeus/process/output_tap.h"

#include <gtest/gtest.h>

#include <string>

namespace zeus {
namespace output_tap_test {

TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

TEST(LineCutterTest, CarriageReturnsEndLinesToo) {
  LineCutter lines;
  lines.Feed(At(1), "a\rb\r\nc");
  EXPECT_EQ(lines.Next()->text, "a");
  EXPECT_EQ(lines.Next()->text, "b");
  EXPECT_FALSE(lines.Next());
  EXPECT_EQ(lines.Rest()->text, "c");
  EXPECT_FALSE(lines.Rest());
}

TEST(LineCutterTest, ALineThatComesInPiecesIsWhole) {
  LineCutter lines;
  lines.Feed(At(1), "step 1");
  EXPECT_FALSE(lines.Next());
  lines.Feed(At(2), "2\n");
  const auto line = lines.Next();
  ASSERT_TRUE(line);
  EXPECT_EQ(line->text, "step 12");
  EXPECT_EQ(line->when, At(2));
}

TEST(LineCutterTest, ABarThatBeginsWithTheCarriageReturnHasTheTimeAtWhichItWasDrawn) {
  LineCutter lines;
  lines.Feed(At(1), "\rstep 5");
  EXPECT_FALSE(lines.Next());
  lines.Feed(At(2), "\rstep 6");
  const auto line = lines.Next();
  ASSERT_TRUE(line);
  EXPECT_EQ(line->text, "step 5");
  EXPECT_EQ(line->when, At(1));
}

TEST(LineCutterTest, OfAnEndlessLineTheEndIsKept) {
  LineCutter lines;
  for (int i = 0; i < 100; ++i) {
    lines.Feed(At(i), std::string(1000, 'x'));
    EXPECT_FALSE(lines.Next());
  }
  lines.Feed(At(100), "step 7\n");
  const auto line = lines.Next();
  ASSERT_TRUE(line);
  EXPECT_LE(line->text.size(), 4096U);
  EXPECT_TRUE(line->text.ends_with("step 7"));
}

}  // namespace output_tap_test
}  // namespace zeus
