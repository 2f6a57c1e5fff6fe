#include "zeus/base/wrapped_text.h"

#include <gtest/gtest.h>

namespace zeus {
namespace wrapped_text_test {

TEST(WrappedTextTest, LinesThatFitStayAsTheyAre) {
  EXPECT_EQ(WrappedText("", 10), "");
  EXPECT_EQ(WrappedText("a  table   row\n", 20), "a  table   row\n");
  EXPECT_EQ(WrappedText("ten chars.", 10), "ten chars.");
}

TEST(WrappedTextTest, LongLinesAreBrokenAtBlanks) {
  EXPECT_EQ(WrappedText("one two three four", 9), "one two\nthree\nfour");
  EXPECT_EQ(WrappedText("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(WrappedText("  one two three", 8, 2), "  one\n    two\n    three");
}

TEST(WrappedTextTest, AWordIsNeverBroken) {
  EXPECT_EQ(WrappedText("see /a/very/long/path now", 6), "see\n/a/very/long/path\nnow");
}

TEST(WrappedTextTest, WidthIsCountedInCharacters) {
  EXPECT_EQ(WrappedText("± ± ±", 5), "± ± ±");
  EXPECT_EQ(WrappedText("± ± ±", 4), "± ±\n±");
}

TEST(WrappedTextTest, ColoursTakeNoPlace) {
  EXPECT_EQ(WrappedText("\x1b[32myes\x1b[0m it is", 9), "\x1b[32myes\x1b[0m it is");
  EXPECT_EQ(WrappedText("\x1b[32myes\x1b[0m it is", 8), "\x1b[32myes\x1b[0m it\nis");
  EXPECT_EQ(WrappedText("\x1b[", 1), "\x1b[");
}

TEST(WrappedTextTest, EachLineIsWrappedForItself) {
  EXPECT_EQ(WrappedText("one two\n  three four\n", 7), "one two\n  three\n  four\n");
}

}  // namespace wrapped_text_test
}  // namespace zeus
