#include "zeus/base/text.h"

#include <gtest/gtest.h>

namespace zeus {
namespace text_test {

TEST(TextTest, TextThatIsNotANumberIsQuotedSafely) {
  EXPECT_EQ(ParseUnsigned("12x").error().message, "\"12x\" is not a non-negative integer");
  EXPECT_EQ(ParseUnsigned("-1").error().message, "\"-1\" is not a non-negative integer");
  EXPECT_EQ(ParseUnsigned("\x1b[2J").error().message, "\"\\x1b[2J\" is not a non-negative integer");
  EXPECT_FALSE(ParseUnsigned("").ok());
  EXPECT_FALSE(ParseInteger("9223372036854775808").ok());
  EXPECT_FALSE(ParseDouble("1.5W").ok());
}

TEST(TextTest, ParsesHexadecimal) { EXPECT_EQ(ParseUnsigned("1f", 16).value(), 31U); }

TEST(TextTest, LowerCaseLeavesAllButLettersAlone) {
  EXPECT_EQ(LowerCase("0000:3B:00.0 Mhz"), "0000:3b:00.0 mhz");
  EXPECT_EQ(LowerCase(""), "");
}

TEST(PrintableTest, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(Printable("/usr/lib/libnvidia-ml.so.1"), "/usr/lib/libnvidia-ml.so.1");
  EXPECT_EQ(Printable(""), "");
}

TEST(PrintableTest, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(Printable("a\x1b[2J\n\x7f\x9b"), "a\\x1b[2J\\x0a\\x7f\\x9b");
}

TEST(PrintableTest, LongTextIsCut) {
  EXPECT_EQ(Printable(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(Printable(std::string(5000, 'x')), std::string(200, 'x') + "...");
}

}  // namespace text_test
}  // namespace zeus
