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

TEST(TextTest, ListsAreSplitAtCommasAndTheirPartsTrimmed) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(SplitAtCommas("a, b ,c"), (Parts{"a", "b", "c"}));
  EXPECT_EQ(SplitAtCommas("a,,"), (Parts{"a", "", ""}));
  EXPECT_EQ(SplitAtCommas(""), Parts{""});
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

TEST(ClosestWordTest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("run", "run"), 0U);
  EXPECT_EQ(EditDistance("rn", "run"), 1U);
  EXPECT_EQ(EditDistance("runn", "run"), 1U);
  EXPECT_EQ(EditDistance("ran", "run"), 1U);
  EXPECT_EQ(EditDistance("rnu", "run"), 1U);
  EXPECT_EQ(EditDistance("", "run"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
}

TEST(ClosestWordTest, FindsTheWordThatWasMeant) {
  const std::vector<std::string> verbs = {"monitor", "run", "replay", "train"};
  EXPECT_EQ(ClosestWord("rn", verbs), "run");
  EXPECT_EQ(ClosestWord("montior", verbs), "monitor");
  EXPECT_EQ(ClosestWord("trian", verbs), "train");
  EXPECT_EQ(ClosestWord("replya", verbs), "replay");
}

TEST(ClosestWordTest, AWordThatIsFarFromAllIsNoneOfThem) {
  const std::vector<std::string> verbs = {"monitor", "run", "replay", "train"};
  EXPECT_EQ(ClosestWord("banana", verbs), std::nullopt);
  EXPECT_EQ(ClosestWord("x", verbs), std::nullopt);
  EXPECT_EQ(ClosestWord("", verbs), std::nullopt);
  EXPECT_EQ(ClosestWord(std::string(1 << 20, 'r'), verbs), std::nullopt);
  EXPECT_EQ(ClosestWord("run", {}), std::nullopt);
}

}  // namespace text_test
}  // namespace zeus
