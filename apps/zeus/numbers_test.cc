#include "apps/zeus/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace zeus::cli {
namespace numbers_test {

using ::testing::HasSubstr;

std::string Check(const Validator& validator, std::string text) { return validator(text); }

TEST(NumbersTest, TakesNumbersInTheRange) {
  for (const char* text : {"0.01", "1", "3600", "1e3"})
    EXPECT_EQ(Check(NumberBetween(0.01, 3600), text), "") << text;
}

TEST(NumbersTest, RefusesWhatIsNoFiniteNumberInTheRange) {
  for (const char* text : {"", "nan", "inf", "-1", "0", "3601", "1s", " 1", "0x10"})
    EXPECT_THAT(Check(NumberBetween(0.01, 3600), text), HasSubstr("from 0.01 to 3600")) << text;
}

TEST(NumbersTest, WholeNumbersAreDecimal) {
  std::string text = "010";
  EXPECT_EQ(WholeNumberBetween(0, 100)(text), "");
  EXPECT_EQ(text, "10");
}

TEST(NumbersTest, RefusesWhatIsNoWholeNumberInTheRange) {
  for (const char* text : {"", "-1", "1.5", "101", "18446744073709551616", "x"})
    EXPECT_THAT(Check(WholeNumberBetween(0, 100), text), HasSubstr("from 0 to 100")) << text;
}

}  // namespace numbers_test
}  // namespace zeus::cli
