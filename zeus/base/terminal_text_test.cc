#include "zeus/base/terminal_text.h"

#include <gtest/gtest.h>

namespace zeus {
namespace terminal_text_test {

TEST(TerminalTextTest, OrdinaryTextStaysAsItIs) {
  const std::string text = "12.3 kJ ± 0.4 kJ\t(größer, 日本, 🦔)\n";
  EXPECT_EQ(ForTerminal(text), text);
  EXPECT_EQ(OneLineForTerminal("gpu:0  Tesla V100 ± µ"), "gpu:0  Tesla V100 ± µ");
}

TEST(TerminalTextTest, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(ForTerminal("a\x1b]0;owned\x07"), "a\\x1b]0;owned\\x07");
  EXPECT_EQ(ForTerminal("over\rwritten\b\x7f"), "over\\x0dwritten\\x08\\x7f");
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "2J"),
            "\\x9b2J");
  EXPECT_EQ(ForTerminal("abc\xe2\x80\xae"
                        "cba"),
            "abc\\u202ecba");
  EXPECT_EQ(OneLineForTerminal("one\ntwo\tthree"), "one\\x0atwo\\x09three");
}

TEST(TerminalTextTest, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(ForTerminal("\x9b"), "\\x9b");
  EXPECT_EQ(ForTerminal("\xc0\x80"), "\\xc0\\x80");
  EXPECT_EQ(ForTerminal("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(ForTerminal("ends in \xe2\x80"), "ends in \\xe2\\x80");
  EXPECT_EQ(ForTerminal("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(TerminalTextTest, NothingIsCut) {
  EXPECT_EQ(ForTerminal(std::string(100'000, 'x')).size(), 100'000U);
}

TEST(TerminalTextTest, JsonStaysJson) {
  EXPECT_EQ(JsonForTerminal("{\n  \"a\": \"\x7f\xc2\x9b\xe2\x80\xae\"\n}"),
            "{\n  \"a\": \"\\u007f\\u009b\\u202e\"\n}");
}

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

}  // namespace terminal_text_test
}  // namespace zeus
